"""What the verdicts on the corpora come to: caught, missed, not visible here, false alarms; a table and an exit code.

A cheat is caught when it does not pass, whatever stopped it; a status other than the expected one is said, and is no
miss. Owns no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.records import Judging, Record, Status
from orchestrator.redteam.entries import Entry

WHOLE, RUNTIME = "whole", "runtime"
_TITLES = {WHOLE: "the whole", RUNTIME: "the run-time layer alone"}


class Outcome(StrEnum):
    """What a layer's verdict means for a file."""

    CAUGHT = "caught"
    MISSED = "missed"
    HIDDEN = "not visible here"  # it needs a GPU
    NOT_ITS = "not visible to this layer"  # only the source shows it
    ACCEPTED = "accepted"  # an honest one
    FALSE_ALARM = "false alarm"
    FREE = "no verdict prescribed"
    FAILED = "our machinery failed"


_LOOK = (Outcome.MISSED, Outcome.FALSE_ALARM, Outcome.FAILED)  # said at once, with the judge's words


@dataclass(frozen=True)
class Seen:
    """What one layer made of one file."""

    layer: str
    status: Status
    message: str
    ran: bool  # the policy let it through, or was not asked
    touched: tuple[str, ...]  # files of the job that were changed: it got out
    needs_gpu: bool  # the judge says that it cannot judge this without a GPU
    seconds: float


@dataclass(frozen=True)
class Result(Record):
    """One file by one layer."""

    name: str
    kind: str
    honest: bool
    layer: str
    outcome: Outcome
    status: Status
    expected: tuple[Status, ...]
    message: str
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether the status is one that the corpus names; trivially so where it names none."""
        return not self.expected or self.status in self.expected


@dataclass(frozen=True)
class Score(Record):
    """One run of the corpora: where it was judged, and every result."""

    judging: Judging
    results: tuple[Result, ...]

    def of(self, layer: str) -> tuple[Result, ...]:
        """A layer's results."""
        return tuple(result for result in self.results if result.layer == layer)

    @property
    def exit_code(self) -> int:
        """1 when something visible was missed or an honest one refused, 3 when we could not say, else 0."""
        found = {result.outcome for result in self.results}
        if found & {Outcome.MISSED, Outcome.FALSE_ALARM}:
            return 1
        return 3 if Outcome.FAILED in found else 0


def result(entry: Entry, seen: Seen, judging: Judging) -> Result:
    """What a verdict on a file means."""
    expected = entry.expected if seen.layer == WHOLE else entry.runtime
    message = f"changed {', '.join(seen.touched)} ({seen.message})" if seen.touched else seen.message
    outcome = _outcome(entry, seen, judging.interpreted, visible=bool(expected))
    shown = tuple(sorted(expected))
    return Result(entry.name, entry.kind, entry.honest, seen.layer, outcome, seen.status, shown, message, seen.seconds)


def _outcome(entry: Entry, seen: Seen, interpreted: bool, *, visible: bool) -> Outcome:
    if seen.touched:
        return Outcome.MISSED  # it got out, whatever its values were
    if not entry.prescribed:
        return Outcome.FREE
    if seen.needs_gpu or (entry.needs_gpu and interpreted and seen.status is Status.PASSED):
        return Outcome.HIDDEN
    if seen.status is Status.INFRASTRUCTURE:
        return Outcome.FAILED
    if entry.honest:
        return Outcome.ACCEPTED if seen.status is Status.PASSED else Outcome.FALSE_ALARM
    if seen.status is not Status.PASSED:
        return Outcome.CAUGHT
    return Outcome.MISSED if visible else Outcome.NOT_ITS


def line(results: Iterable[Result]) -> str:
    """One file's outcomes: "caught, FALLBACK; run-time layer alone: caught, WRONG_VALUES instead of FALLBACK"."""
    return "; ".join(
        ("" if one.layer == WHOLE else "run-time layer alone: ")
        + _said(one)
        + (f": {one.message}" if one.outcome in _LOOK else "")
        for one in results
    )


def table(score: Score) -> list[str]:
    """The whole outcome as lines: figures of each layer, then everything that needs a look, by name."""
    lines: list[str] = []
    for layer in (WHOLE, RUNTIME):
        if results := score.of(layer):
            lines += [*_figures(_TITLES[layer], results), *_named(results), ""]
    return lines[:-1]


def _figures(title: str, results: Sequence[Result]) -> list[str]:
    cheats = [result for result in results if not result.honest]
    count = {outcome: sum(result.outcome is outcome for result in results) for outcome in Outcome}
    visible = count[Outcome.CAUGHT] + count[Outcome.MISSED] + count[Outcome.NOT_ITS]
    honest = count[Outcome.ACCEPTED] + count[Outcome.FALSE_ALARM]
    share = f" ({100 * count[Outcome.CAUGHT] / visible:.1f} %)" if visible else ""
    lines = [
        f"{title}: {len(cheats)} cheats, {len(results) - len(cheats)} honest kernels",
        f"  caught                     {count[Outcome.CAUGHT]} of {visible} visible{share}",
        f"  missed                     {count[Outcome.MISSED]}",
        f"  not visible here           {count[Outcome.HIDDEN]}",
    ]
    if count[Outcome.NOT_ITS]:
        lines.append(f"  not visible to this layer  {count[Outcome.NOT_ITS]}")
    lines += [
        f"  no verdict prescribed      {count[Outcome.FREE]}",
        f"  false alarms               {count[Outcome.FALSE_ALARM]} of {honest}",
    ]
    return lines + ([f"  our machinery failed       {count[Outcome.FAILED]}"] if count[Outcome.FAILED] else [])


def _named(results: Sequence[Result]) -> list[str]:
    """Everything but what went as it should."""
    lines = []
    for outcome in (
        *(Outcome.MISSED, Outcome.FALSE_ALARM, Outcome.FAILED, Outcome.HIDDEN, Outcome.NOT_ITS),
        Outcome.FREE,
    ):
        lines += [f"  {outcome}: {one.name} ({one.kind}): {_detail(one)}" for one in results if one.outcome is outcome]
    other = [one for one in results if one.outcome is Outcome.CAUGHT and not one.as_expected]
    return lines + [f"  caught, as {one.status} instead of {_wanted(one)}: {one.name}" for one in other]


def _said(result: Result) -> str:
    if result.outcome is Outcome.CAUGHT and not result.as_expected:
        return f"caught, as {result.status} instead of {_wanted(result)}"
    return f"{result.outcome}, {result.status}" if result.outcome is not Outcome.ACCEPTED else "accepted"


def _detail(result: Result) -> str:
    return f"{result.status}, {result.message}" if result.status is not Status.PASSED else result.message


def _wanted(result: Result) -> str:
    return " or ".join(result.expected) or "a pass"
