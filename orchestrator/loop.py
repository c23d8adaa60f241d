"""The loop: propose, guard and judge, feed back, measure, decide. One op, one page.

What each step does is elsewhere (agents, attempt, settle), and so is everything that is written down (recorder).
"""

from __future__ import annotations

from pathlib import Path

from orchestrator import rounds
from orchestrator.agents import Agent
from orchestrator.agents.given import NobodyToAsk
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.attempt import judge_reply, require_sandbox
from orchestrator.config import LAUNCH, Settings
from orchestrator.docs import cache as docs
from orchestrator.errors import BudgetSpent
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.recorder import Recorder
from orchestrator.records import Decision, Reply, Run
from orchestrator.relaunch import relaunch
from orchestrator.sampling import proposals
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
    guide = docs.ready(judging.versions["triton"], settings.docs.folder)
    if settings.judge.require_sandbox:
        require_sandbox(judging)
    recorder = Recorder.open(op, agent.name, settings, workspaces, judging, watch, run_id)
    prompts = Prompts(op, judging, settings.loop.rounds, guide, in_tree=settings.agent.in_tree)
    with recorder.recording():
        for rung, stage in enumerate(settings.loop.stages, 1):
            try:
                await _stage(stage, prompts, op, agent, executor, settings, recorder)
            except NobodyToAsk as alone:
                recorder.remark(f"It ended with the kernel that was given: {alone}")
                if recorder.run.best is None:
                    verdict = await weighed(op, executor, settings, recorder, judging, settings.loop.stages[:rung])
                break
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
    stage: str, prompts: Prompts, op: Op, agent: Agent, executor: Executor, settings: Settings, recorder: Recorder
) -> None:
    """Up to `rounds` rounds, each of one proposal or of several; of one that fails, what came furthest goes back to the
    model with its whole report.

    The first stage begins from the specification, and before it from a person's kernel where there is one; a later one
    from the best kernel and what was measured of it. The rung without a model proposes once, if at all.
    """
    if stage == LAUNCH:
        sweeper = await relaunch(op, executor, settings, recorder)
        if sweeper is None:
            return
        agent = sweeper
    tried = recorder.tried() if settings.loop.remember else ()
    first = recorder.run.best is None
    prompt = prompts.generate(tried) if first else prompts.improve(stage, tried, *recorder.so_far())
    for round_ in settings.loop.rounds_of(stage):
        replies: dict[int, Reply] = {}  # by the number of their attempts
        for one in await proposals(agent, prompt, stage, round_, settings.loop.samples_of(round_), recorder):
            recorder.judging()
            judged = await judge_reply(one.reply, op, recorder.branch, executor, settings.judge, one.folder)
            replies[recorder.judged(stage, round_, one.reply, judged, one.folder).number] = one.reply
        furthest, *others = rounds.ranked(recorder.run)
        if furthest.report.accepted:
            return
        prompt = prompts.repair(prompt, replies[furthest.number], furthest.report, round_, others)
