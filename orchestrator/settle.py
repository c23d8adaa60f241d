"""From a kernel that passed to the end of its run: measured where that is possible, decided, merged if it won.

Owns that order, for the loop and for a run that is taken up again. The figures are `measure`'s, the rules `decide`'s,
what is written down `recorder`'s.
"""

from __future__ import annotations

from orchestrator import rounds
from orchestrator.config import OPTIMIZE, Settings
from orchestrator.decide import decide, least_inside
from orchestrator.executors import Executor
from orchestrator.measuring import measure_kernel, unmeasurable
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.records import Decision, Judging, Verdict


async def weighed(
    op: Op, executor: Executor, settings: Settings, recorder: Recorder, judging: Judging, done: tuple[str, ...]
) -> Verdict:
    """Measure what a stage brought, where there is something to measure on, and decide.

    `done` are the stages behind us. A stage that brought nothing new leaves the best kernel as it was. Of several that
    a round brought the first is measured, in optimize all.
    """
    reason, left = unmeasurable(op, judging), len(set(settings.loop.stages) - set(done))
    thresholds = op.spec.thresholds(settings.decision)
    recorder.fewer_rungs(left)
    challengers = () if reason else rounds.challengers(recorder.run)
    for challenger in challengers if done[-1] == OPTIMIZE else challengers[:1]:
        folder, rivals = recorder.measures(challenger)
        kernel, tell = recorder.kernel_of(challenger), recorder.measuring
        measured = await measure_kernel(kernel, rivals, op, recorder.branch.export, executor, settings, folder, tell)
        reason = recorder.measured(challenger, measured, rivals, left, thresholds.margin_floor)
    ended = rounds.furthest(recorder.run)

    def decided() -> Verdict:
        return decide(
            ended.status if ended else None,
            recorder.run.best is not None,
            recorder.run.measurement,
            thresholds,
            objection=recorder.objection(),
            unmeasured_reason=reason,
            rounds=rounds.had(recorder.run, settings.loop.rounds),
            rungs_done=done,
            persist=settings.loop.persist,
        )

    verdict, least = decided(), least_inside(recorder.run.measurement, thresholds)
    if verdict.decision is not Decision.ABANDON or least is None:
        return verdict
    # Nothing is left to try: it is claimed for the shapes at which it holds, where these are nearly all.
    return decided() if recorder.narrowed(least, thresholds.outside_share) else verdict


def conclude(recorder: Recorder, verdict: Verdict) -> None:
    """Write the decision down; a kernel that is to be merged is."""
    recorder.concluded(verdict)
    if verdict.decision is Decision.MERGE:
        recorder.merged()
