"""The loop: propose, guard and judge, feed back, measure, decide. One op, one page.

What each step does is elsewhere (agents, attempt, measure, decide), and so is everything that is written down
(recorder).
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.agents import Agent, Request
from orchestrator.attempt import judge_reply, require_sandbox
from orchestrator.config import Settings
from orchestrator.decide import decide
from orchestrator.executors import Executor
from orchestrator.measure import measure_kernel
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.recorder import Recorder
from orchestrator.records import Attempt, Decision, Judging, Run, Verdict
from orchestrator.watch import Watch

_NO_GPU = "there is no GPU here, and times in Triton's interpreter mean nothing"


async def run_op(op: Op, agent: Agent, executor: Executor, settings: Settings, workspaces: Path, watch: Watch) -> Run:
    """Run the loop on one op, stage after stage, until the decision is not to rework; returns the run's record.

    Raises OrchestratorError when our own machinery fails or the settings cannot work; the record says so too.
    """
    judging = await executor.start()
    if settings.judge.require_sandbox:
        require_sandbox(judging)
    recorder = Recorder.open(op, agent.name, settings, workspaces, judging, watch)
    with recorder.recording():
        for rung, stage in enumerate(settings.loop.stages, 1):
            await _stage(stage, op, agent, executor, settings, recorder, judging)
            done = settings.loop.stages[:rung]
            verdict = await weighed(op, executor, settings, recorder, judging, done)
            if verdict.decision is not Decision.REWORK:
                break
        conclude(recorder, verdict)
    return recorder.run


async def _stage(
    stage: str, op: Op, agent: Agent, executor: Executor, settings: Settings, recorder: Recorder, judging: Judging
) -> None:
    """Up to `rounds` proposals; each failing one goes back to the model with its whole report."""
    prompts = Prompts(op, judging, settings.loop.rounds)
    prompt = prompts.generate()
    for round_ in range(1, settings.loop.rounds + 1):
        folder = recorder.asked(prompt, stage, round_)
        reply = await agent.propose(Request(prompt, stage, round_, folder))
        recorder.answered(reply, folder)
        judged = await judge_reply(reply, op, recorder.branch, executor, settings.judge, folder)
        recorder.judged(stage, round_, prompt, reply, judged, folder)
        if judged.report.passed:
            return
        prompt = prompts.repair(prompt, reply, judged.report, round_)


async def weighed(
    op: Op, executor: Executor, settings: Settings, recorder: Recorder, judging: Judging, done: tuple[str, ...]
) -> Verdict:
    """Measure the best kernel where there is something to measure on, and decide. `done` are the stages behind us."""
    left = len(settings.loop.stages) - len(done)
    reason = _NO_GPU
    if recorder.run.best is not None and not judging.interpreted:
        rivals, kernel = recorder.rivals(), recorder.best_kernel()
        export, folder, tell = recorder.branch.export, recorder.folder, recorder.measuring
        measured = await measure_kernel(kernel, rivals, op, export, executor, settings, folder, tell)
        reason = recorder.measured(measured, rivals, left)
    return _decision(recorder.run, op, settings, reason, done)


def conclude(recorder: Recorder, verdict: Verdict) -> None:
    """Write the decision down; a kernel that is to be merged is."""
    recorder.concluded(verdict)
    if verdict.decision is Decision.MERGE:
        recorder.merged()


def _decision(run: Run, op: Op, settings: Settings, unmeasured_reason: str, done: tuple[str, ...]) -> Verdict:
    last: Attempt | None = run.attempts[-1] if run.attempts else None
    return decide(
        last.status if last else None,
        run.best is not None,
        run.measurement,
        op.spec.thresholds(settings.decision),
        unmeasured_reason=unmeasured_reason,
        rounds=settings.loop.rounds,
        rungs_done=done,
    )
