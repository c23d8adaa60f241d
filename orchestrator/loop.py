"""The loop: propose, guard and judge, feed back, measure, decide. One op, one page.

What each step does is elsewhere (agents, attempt, settle), and so is everything that is written down (recorder).
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.agents import Agent, Request
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.attempt import judge_reply, require_sandbox
from orchestrator.config import Settings
from orchestrator.errors import BudgetSpent
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.recorder import Recorder
from orchestrator.records import Decision, Judging, Run
from orchestrator.settle import conclude, weighed
from orchestrator.watch import Watch


async def run_op(
    op: Op,
    agent: Agent,
    executor: Executor,
    settings: Settings,
    workspaces: Path,
    watch: Watch,
    run_id: str | None = None,
) -> Run:
    """Run the loop on one op, stage after stage, until the decision is not to rework; returns the run's record.

    A run_id that was begun before goes on from its last completed step: what is kept of it is taken as it is.
    Raises OrchestratorError when our own machinery fails or the settings cannot work; the record says so too.
    """
    judging = await executor.start()
    if settings.judge.require_sandbox:
        require_sandbox(judging)
    recorder = Recorder.open(op, agent.name, settings, workspaces, judging, watch, run_id)
    with recorder.recording():
        for rung, stage in enumerate(settings.loop.stages, 1):
            try:
                await _stage(stage, op, agent, executor, settings, recorder, judging)
            except (RepliesExhausted, BudgetSpent) as exhausted:
                if recorder.run.best is None:
                    raise
                recorder.remark(f"It ended with the best kernel so far: {exhausted}")
                break
            verdict = await weighed(op, executor, settings, recorder, judging, settings.loop.stages[:rung])
            if verdict.decision is not Decision.REWORK:
                break
        conclude(recorder, verdict)
    return recorder.run


async def _stage(
    stage: str, op: Op, agent: Agent, executor: Executor, settings: Settings, recorder: Recorder, judging: Judging
) -> None:
    """Up to `rounds` proposals; each failing one goes back to the model with its whole report.

    The first stage begins from the specification, a later one from the best kernel and what was measured of it.
    """
    prompts = Prompts(op, judging, settings.loop.rounds, settings.agent.in_tree)
    prompt = prompts.generate() if recorder.run.best is None else prompts.improve(stage, *recorder.so_far())
    for round_ in range(1, settings.loop.rounds + 1):
        folder = recorder.asked(prompt, stage, round_)
        reply = await agent.propose(Request(prompt, stage, round_, folder, recorder.begins_with(round_)))
        recorder.answered(reply, folder)
        judged = await judge_reply(reply, op, recorder.branch, executor, settings.judge, folder)
        recorder.judged(stage, round_, reply, judged, folder)
        if judged.report.passed:
            return
        prompt = prompts.repair(prompt, reply, judged.report, round_)
