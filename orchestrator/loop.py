"""The loop: propose, guard and judge, feed back, decide. One op, one page.

What each step does is elsewhere (agents, attempt, decide), and so is everything that is written down (recorder).
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.agents import Agent, Request
from orchestrator.attempt import judge_reply, require_sandbox
from orchestrator.config import Settings
from orchestrator.decide import decide
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.recorder import Recorder
from orchestrator.records import Attempt, Judging, Run, Verdict
from orchestrator.watch import Watch


async def run_op(op: Op, agent: Agent, executor: Executor, settings: Settings, workspaces: Path, watch: Watch) -> Run:
    """Run the loop on one op until an attempt passes or the rounds are used up; returns the run's record.

    Raises OrchestratorError when our own machinery fails or the settings cannot work; the record says so too.
    """
    judging = await executor.start()
    if settings.judge.require_sandbox:
        require_sandbox(judging)
    recorder = Recorder.open(op, agent.name, settings, workspaces, judging, watch)
    with recorder.recording():
        for stage in settings.loop.stages:
            await _stage(stage, op, agent, executor, settings, recorder, judging)
        recorder.concluded(_decision(recorder.run, settings, judging))
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


def _decision(run: Run, settings: Settings, judging: Judging) -> Verdict:
    last: Attempt | None = run.attempts[-1] if run.attempts else None
    return decide(
        last.status if last else None,
        run.best is not None,
        run.measurement,
        settings.decision,
        unmeasured_reason=(
            "there is no GPU here, and times in Triton's interpreter mean nothing"
            if judging.interpreted
            else "this version judges correctness only; bench.py in the export gives indicative times"
        ),
        rounds=settings.loop.rounds,
    )
