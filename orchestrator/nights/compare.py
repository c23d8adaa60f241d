"""What is worse than it was: a champion against its own record, a night against the last one. Pure functions.

Slower is said of a champion only where it fell back against every baseline that both sessions timed beside it: a
baseline that became faster, with a newer torch, is no fault of the kernel.
"""

from __future__ import annotations

from orchestrator import weigh
from orchestrator.measured import BEST, CHAMPION, Measured
from orchestrator.nights.story import Begun, Checked, Drift, Night, Regression, Speed


def speed(now: Measured, record: Measured | None, where: str, margin_floor: float) -> Speed:
    """Tonight's measurement against the champion's own record, if there is one of the same card. `now` has no fault."""
    weighed = weigh.weigh(now, rungs_left=0)
    gpu = now.before.name if now.before else ""
    same_card = record is not None and record.before is not None and record.before.name == gpu
    found = drifts(record, now) if record is not None and same_card else ()
    spread = max(weigh.noise(now), weigh.noise(record) if record is not None else 0.0, margin_floor)
    return Speed(
        gpu=gpu,
        baseline=weighed.baseline,
        speedup_low=weighed.speedup_low,
        speedup_high=weighed.speedup_high,
        roofline_share=weighed.roofline_share,
        noise=weighed.spread,
        record=where if found else "",
        drifts=found,
        slower=bool(found) and all(one.now_high < one.then_low * (1 - spread) for one in found),
    )


def drifts(then: Measured, now: Measured) -> tuple[Drift, ...]:
    """The speedup over each baseline that both timed, over the shapes that count in both."""
    shapes = {shape.name for shape in weigh.counting(then)} & {shape.name for shape in weigh.counting(now)}
    found = []
    for name in weigh.baselines(now):
        before, after = (weigh.over_baseline(measured, name, shapes) for measured in (then, now))
        if name not in (BEST, CHAMPION) and before is not None and after is not None:
            found.append(Drift(name, before.low, before.high, after.low, after.high))
    return tuple(found)


def regressions(checked: tuple[Checked, ...], last: Night | None) -> tuple[Regression, ...]:
    """What a person must see. What the audit finds counts where the last night saw the same kernel without it."""
    before = {one.standing.sha256: one for one in last.checked} if last is not None else {}
    found = [_of(one, before.get(one.standing.sha256)) for one in checked]
    return tuple(regression for several in found for regression in several)


def since(begun: Begun, checked: tuple[Checked, ...], last: Night | None) -> tuple[str, ...]:
    """What else is different from the last night, in words."""
    if last is None:
        return ()
    then, now = last.begun.judging, begun.judging
    lines = [] if then.device == now.device else [f"judged on {now.device}, the last night on {then.device}"]
    versions = {**then.versions, **now.versions}
    lines += [
        f"{name} {now.versions.get(name, 'gone')}, the last night {then.versions.get(name, 'not there')}"
        for name in versions
        if then.versions.get(name) != now.versions.get(name)
    ]
    before = {one.op: one for one in last.checked}
    held = {one.op: one.standing.sha256 for one in last.checked if not one.fell}
    for one in checked:
        if one.op not in held:
            lines.append(f"{one.op}: has a champion, the last night had none")
        elif held[one.op] != one.standing.sha256:
            lines.append(f"{one.op}: another champion than the last night's")
        elif before[one.op].unjudged and not one.unjudged:
            lines.append(f"{one.op}: has a verdict again")
    gone = sorted(set(held) - {one.op for one in checked})
    return (*lines, *(f"{op}: has no champion any more" for op in gone))


def _of(one: Checked, before: Checked | None) -> list[Regression]:
    found = []
    if one.fell:
        found.append(Regression(one.op, "demoted", f"{one.status}: {one.message}"))
    elif not one.holds and not one.unjudged:
        text = f"{one.status}, then {one.again} with the same values: {one.message}"
        found.append(Regression(one.op, "unsteady", text))
    if one.speed is not None and one.speed.slower:
        worst = max(one.speed.drifts, key=lambda drift: drift.now_high / drift.then_low)
        text = (
            f"{worst.now_low:.3f} to {worst.now_high:.3f} times the speed of {worst.baseline}, "
            f"{worst.then_low:.3f} to {worst.then_high:.3f} by {one.speed.record}; no better against any other"
        )
        found.append(Regression(one.op, "slower", text))
    new = [finding for finding in one.grave if before is not None and finding not in before.grave]
    return [*found, *(Regression(one.op, "audit", finding) for finding in new)]
