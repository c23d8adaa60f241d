"""What becomes of a run: one pure function over what was judged and measured.

Owns the decision table and its words. Measures nothing, reads no clock and no file, and knows no kernel: whoever calls
it says what passed and how fast it was, and gets a decision with a reason that names the numbers.

"Better" is said once, here: a speedup above 1 is a faster kernel. A speedup is believed by the lower end of its
interval, and only beyond the margin: the machine's own noise, or the floor where that is larger. What is said over all
shapes is held to the noise over all, what is said of one shape to the largest at one.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.records import Decision, Measurement, Record, Status, Verdict

_REFUSED = frozenset({Status.TAMPERED, Status.FORBIDDEN, Status.FALLBACK})


@dataclass(frozen=True)
class Thresholds(Record):
    """What counts as faster, as fast as the hardware allows, and as tried enough."""

    margin_floor: float = 0.02  # a speedup within it of 1 is parity, however quiet the machine
    roofline_share: float = 0.92  # from here on there is nothing worth gaining
    parity_rungs: tuple[str, ...] = ("optimize",)  # still parity after these stages: more will not help
    outside_share: float = 0.25  # of the shapes, at most, may be put outside a kernel's envelope, being slower

    def __post_init__(self) -> None:
        if not 0 <= self.margin_floor < 1:
            raise ValueError(f"margin_floor is a fraction from 0 to below 1, not {self.margin_floor}")
        if not 0 < self.roofline_share <= 1:
            raise ValueError(f"roofline_share is a fraction above 0 and at most 1, not {self.roofline_share}")
        if not 0 <= self.outside_share < 1:
            raise ValueError(f"outside_share is a fraction from 0 to below 1, not {self.outside_share}")


@dataclass(frozen=True)
class Line:
    """One line of the table, as one run fills it in."""

    condition: str
    decision: Decision
    figures: str = ""  # what the condition was asked of, where a run has it
    reason: str = ""  # of the decision, where the condition holds; "" where it does not

    @property
    def holds(self) -> bool:
        """Whether the condition does."""
        return bool(self.reason)


def decide(
    last_status: Status | None,
    passed: bool,
    measurement: Measurement | None,
    thresholds: Thresholds,
    *,
    unmeasured_reason: str,
    rounds: int,
    rungs_done: tuple[str, ...] = (),
    persist: bool = False,
    objection: str = "",
) -> Verdict:
    """The decision of a run and why: the first line of the table that holds. Always answers.

    passed says whether some attempt passed and was accepted; last_status is the last attempt's, None if there was none.
    measurement is the best such attempt's and counts only if there is one. rungs_done names the stages tried so far;
    persist goes on at parity as long as there are rungs; rounds is 0 where no model could be asked.
    objection is what the audit establishes against the best kernel, or against one that passed and was not accepted:
    with it nothing is merged.
    """
    lines = table(
        *(last_status, passed, measurement, thresholds),
        unmeasured_reason=unmeasured_reason,
        rounds=rounds,
        rungs_done=rungs_done,
        persist=persist,
        objection=objection,
    )
    return next(Verdict(line.decision, line.reason) for line in lines if line.holds)


def least_inside(measurement: Measurement | None, thresholds: Thresholds) -> float | None:
    """The speedup below which a shape must lie outside the kernel's envelope for it to be merged, where it is faster on
    the whole and slower somewhere; None elsewhere."""
    if measurement is None or _unmeasured(measurement, ""):
        return None
    weighed = _Weighed(measurement, thresholds, (), persist=False)
    return 1 - weighed.margin_at_one if weighed.faster and not weighed.every_shape_holds else None


def table(
    last_status: Status | None,
    passed: bool,
    measurement: Measurement | None,
    thresholds: Thresholds,
    *,
    unmeasured_reason: str,
    rounds: int,
    rungs_done: tuple[str, ...] = (),
    persist: bool = False,
    objection: str = "",
) -> tuple[Line, ...]:
    """The whole table, filled in; it takes what `decide` takes."""
    objected = f"Correct on every case, but not accepted: {objection}; a person looks." if objection else ""
    refused, failed = ("", "") if passed or objected else _nothing_passed(last_status, rounds)
    unmeasured = _unmeasured(measurement, unmeasured_reason) if passed else ""
    weighed = None
    if passed and not unmeasured and measurement is not None:
        weighed = _Weighed(measurement, thresholds, rungs_done, persist)
    asked = weighed.lines() if weighed else tuple(Line(condition, decision) for condition, decision in _WEIGHED)
    last = str(last_status or "")
    return (
        Line("passed, but a known fault is established", Decision.ESCALATE, objection, "" if passed else objected),
        Line("nothing passed, and the last was TAMPERED, FORBIDDEN or FALLBACK", Decision.REJECT, last, refused),
        Line("nothing passed within the rounds", Decision.ESCALATE, last, failed),
        Line("passed, and not measured", Decision.UNMEASURED, "", unmeasured),
        _blocked(asked, objection),
        *asked,
    )


# What a measurement is asked, in this order; the last one always holds.
_WEIGHED = (
    ("faster beyond the margin, and no shape slower beyond it", Decision.MERGE),
    ("at the roofline, and shown not to be slower, at no shape", Decision.MERGE),
    ("no stage left to try", Decision.ABANDON),
    ("parity after the stages that could have changed it", Decision.ABANDON),
    ("otherwise", Decision.REWORK),
)


def _blocked(asked: tuple[Line, ...], objection: str) -> Line:
    """What would be merged, and is not, because the audit establishes a fault."""
    merging = next((line for line in asked if line.holds and line.decision is Decision.MERGE), None)
    reason = f"Not merged, because {objection}; a person looks. {merging.reason}" if merging and objection else ""
    return Line("to be merged, but a known fault is established", Decision.ESCALATE, objection, reason)


def _nothing_passed(last_status: Status | None, rounds: int) -> tuple[str, str]:
    """Why it was refused, why a person is asked: one of them."""
    if last_status is None:
        return "", "Nothing was attempted, so nothing passed; a person should look why."
    if not rounds:
        return _given_failed(last_status)
    within = f"Nothing passed within {rounds} round{'' if rounds == 1 else 's'}"
    if last_status in _REFUSED:
        return f"{within} and the last was refused as {last_status}.", ""
    if last_status is Status.INFRASTRUCTURE:
        return "", f"{within}, the last of which failed by a fault of ours."
    return "", f"{within}, the last ending in {last_status}: specification and implementation disagree; a person looks."


def _given_failed(status: Status) -> tuple[str, str]:
    """The same where a person's kernel is all that was tried."""
    if status in _REFUSED:
        return f"The kernel that was given was refused as {status}, and there was no model to ask.", ""
    return "", f"The kernel that was given ended in {status}, and there was no model to ask: a person looks."


def _unmeasured(measurement: Measurement | None, reason: str) -> str:
    if measurement is None:
        return f"Correct, but not measured: {reason}."
    for noise in (measurement.noise, measurement.spread):
        if not 0 <= noise < 1:  # NaN too: a margin of everything would let anything pass as not slower
            return f"Correct, but not measured: noise of {noise:.0%} drowns any figure; find a quieter machine."
    return ""


@dataclass(frozen=True)
class _Weighed:
    """A measurement against the thresholds: each property is one condition of the table."""

    measurement: Measurement
    thresholds: Thresholds
    rungs_done: tuple[str, ...]
    persist: bool

    @property
    def margin(self) -> float:
        return max(self.measurement.spread, self.thresholds.margin_floor)

    @property
    def margin_at_one(self) -> float:
        return max(self.measurement.noise, self.thresholds.margin_floor)

    @property
    def faster(self) -> bool:
        return self.measurement.speedup_low >= 1 + self.margin

    @property
    def slower(self) -> bool:
        return self.measurement.speedup_high < 1 - self.margin

    @property
    def not_slower(self) -> bool:
        """Shown not to be slower, which is more than not shown to be."""
        return self.measurement.speedup_low >= 1 - self.margin

    @property
    def every_shape_holds(self) -> bool:
        """No shape inside the kernel's envelope is slower beyond the margin."""
        return self.measurement.slowest_speedup >= 1 - self.margin_at_one

    @property
    def at_the_roofline(self) -> bool:
        return self.measurement.roofline_share >= self.thresholds.roofline_share

    @property
    def settled(self) -> bool:
        """Parity, and the rungs that could have changed it are behind us."""
        parity = not self.faster and not self.slower
        return parity and set(self.thresholds.parity_rungs) <= set(self.rungs_done)

    def lines(self) -> tuple[Line, ...]:
        """The lines of the table that a measurement is asked, filled in."""
        m, above, below = self.measurement, 1 + self.margin, 1 - self.margin
        low, slowest = (
            f"at least {m.speedup_low:.3f} times",
            f"slowest shape {m.slowest_speedup:.3f} (asked {1 - self.margin_at_one:.3f})",
        )
        roofline = f"{self._roofline} (asked {self.thresholds.roofline_share:.0%})"
        parity = f"{m.speedup_low:.3f} to {m.speedup_high:.3f} times (parity: {below:.3f} to {above:.3f})"
        exhausted = m.rungs_left <= 0
        asked = (
            (self.faster and self.every_shape_holds, f"{low} (asked {above:.3f}), {slowest}", self._why_faster()),
            (
                self.at_the_roofline and self.not_slower and self.every_shape_holds,
                f"{roofline}, {low} (asked {below:.3f}), {slowest}",
                self._why_roofline(),
            ),
            (exhausted, self._rungs, self._why_abandon()),
            (self.settled and not self.persist, f"{parity}, {self._tried}", self._why_abandon()),
            (True, "", self._why_rework()),
        )
        return tuple(
            Line(condition, decision, figures, why if holds else "")
            for (condition, decision), (holds, figures, why) in zip(_WEIGHED, asked, strict=True)
        )

    @property
    def _figures(self) -> str:
        m = self.measurement
        return f"{m.speedup_low:.3f} to {m.speedup_high:.3f} times the speed of {m.baseline}"

    @property
    def _slowest(self) -> str:
        return f"the slowest shape, {self.measurement.slowest_shape}, at {self.measurement.slowest_speedup:.3f} times"

    @property
    def _roofline(self) -> str:
        return f"{self.measurement.roofline_share:.1%} of the roofline"

    @property
    def _margin(self) -> str:
        return f"the margin of {self.margin:.1%}"

    @property
    def _rungs(self) -> str:
        left = self.measurement.rungs_left
        return f"{left} rung{'' if left == 1 else 's'} left to try"

    @property
    def _tried(self) -> str:
        return f"after {', '.join(self.rungs_done) or 'the first stage only'}"

    def _why_faster(self) -> str:
        return f"Faster: {self._figures}, beyond {self._margin}, {self._slowest}{self._envelope()}."

    def _why_roofline(self) -> str:
        share = f"{self._roofline} (enough from {self.thresholds.roofline_share:.0%})"
        return f"As fast as the hardware allows: {share} and {self._figures}, {self._slowest}{self._envelope()}."

    def _why_rework(self) -> str:
        return f"{self._state()}: {self._figures} at {self._roofline}, {self._slowest}; {self._rungs}."

    def _why_abandon(self) -> str:
        return (
            f"{self._state()} {self._tried}: {self._figures} at {self._roofline}, {self._slowest}; {self._would_pay()}."
        )

    def _state(self) -> str:
        if self.faster:
            return "Faster on the whole but slower somewhere"
        return "Slower" if self.slower else f"Parity within {self._margin}"

    def _would_pay(self) -> str:
        if self.faster:
            return "it would pay at the other shapes"
        return f"it would pay from {1 + self.margin:.3f} times on"

    def _envelope(self) -> str:
        outside = self.measurement.excluded_shapes
        return f"; outside its envelope: {', '.join(outside)}" if outside else ""
