"""Many ops at once, unattended: which run next, what becomes of a failure, where it goes on after a kill.

Owns the order of ops and the boundary at which the failure of one is kept from the others. A run is the loop's, waiting
for a judge the pool's, waiting for a provider the agents'. Only a configuration that can answer nothing stops them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import accounts, ledger, opcheck, outcome, plan, tracking
from orchestrator.agents import Agent
from orchestrator.agents.choose import choose
from orchestrator.agents.given import Nobody
from orchestrator.agents.recorded import INDEX, RepliesExhausted
from orchestrator.asking import Asking, Purse, begins_with
from orchestrator.config import AgentSettings, Settings
from orchestrator.errors import AgentUnusable, OrchestratorError, UsageError
from orchestrator.executors.pool import Pool
from orchestrator.executors.remembering import remembering
from orchestrator.journal import Journal, Noting
from orchestrator.ledger import Entering, Ledger
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.outcome import Outcome
from orchestrator.plan import Plan, Planned
from orchestrator.progress import Progress, Showing
from orchestrator.recorder import RUN
from orchestrator.records import Decision, Run, Usage, from_json
from orchestrator.watch import Several
from orchestrator.workspace import Workspace


@dataclass(frozen=True)
class Work:
    """An op with everything that its run needs."""

    planned: Planned
    op: Op
    settings: Settings


class Agents:
    """Who answers each op: one agent for all ops with the same settings, and one an op where it reads the op's folder.

    Making one asks no provider, but finds a key that is missing.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._made: dict[tuple[AgentSettings, bool], Agent] = {}
        self._replaying = False

    def prepare(self, settings: Settings) -> None:
        """Raises UsageError where no agent can be made of the settings. One line says which it is."""
        name, key = settings.agent.name, _key(settings)
        if name == "recorded" and not self._replaying:
            self._replaying = True
            self._announce("agent recorded: replays the ops' recorded replies and calls no model (asked for)")
        if name != "recorded" and key not in self._made:
            self._made[key], why = self._choose(settings, None)
            self._announce(why)

    def of(self, op: Op, settings: Settings) -> Agent:
        """The op's agent. Raises RepliesExhausted where replies are to be replayed and the op has none."""
        if settings.agent.name != "recorded":
            self.prepare(settings)
            return self._made[_key(settings)]
        if not (op.recorded / INDEX).is_file():
            raise RepliesExhausted(f"no reply was recorded for {op.name} ({op.recorded} has no {INDEX})")
        return self._choose(settings, op.recorded)[0]

    def _choose(self, settings: Settings, recorded: Path | None) -> tuple[Agent, str]:
        name = settings.agent.name
        options = settings.agent.patient_options(require_sandbox=settings.judge.require_sandbox)
        return choose(name, op_recorded=recorded, single_op=False, options=options, announce=self._announce)


def _key(settings: Settings) -> tuple[AgentSettings, bool]:
    """What an agent is made of."""
    return settings.agent, settings.judge.require_sandbox


def check(work: Sequence[Work], agents: Agents, workspaces: Path) -> None:
    """Whatever would stop the batch later, before anything is written. Raises OrchestratorError."""
    shared = work[0].settings
    for one in work:
        settings, name = one.settings, one.planned.op
        if settings.judge.device != shared.judge.device or settings.budget.batch != shared.budget.batch:
            raise UsageError(f"{name}: judge.device and budget.batch are the batch's; an op cannot have its own")
        priced = settings.agent.name == "recorded" or settings.agent.prices is not None
        if not priced and (settings.budget.op.usd or settings.budget.batch.usd):
            raise UsageError(f"{name}: a budget in usd needs a table of prices: -c agent.prices=FILE")
        agents.prepare(settings)
        begins_with(settings.loop.given, Nobody(), one.op)
        if settings.mlflow.log:
            tracking.require()
    for one in work:
        if (workspaces / f"{one.op.name}.git").exists():
            Workspace.open(workspaces, one.op.name)


async def carry_out(
    todo: Plan,
    work: Sequence[Work],
    agents: Agents,
    pool: Pool,
    workspaces: Path,
    index: Ledger,
    progress: Progress,
    concurrency: int,
) -> tuple[Outcome, ...]:
    """Begin a plan, or go on with it, to its end. Its plan is kept before anything is done, and nobody else does it."""
    plan.keep(todo, workspaces)
    with plan.held(todo, workspaces):
        journal = Journal(todo.folder(workspaces) / plan.LOG, batch=todo.id)
        return await Batch(work, agents, pool, workspaces, index, progress, journal).run(concurrency)


class Batch:
    """One plan being carried out."""

    def __init__(
        self,
        work: Sequence[Work],
        agents: Agents,
        pool: Pool,
        workspaces: Path,
        index: Ledger,
        progress: Progress,
        journal: Journal,
    ) -> None:
        self._work = tuple(work)
        self._agents = agents
        self._pool = pool
        self._workspaces = workspaces
        self._ledger = index
        self._progress = progress
        self._journal = journal
        self._purse = Purse("batch", work[0].settings.budget.batch)

    async def run(self, concurrency: int) -> tuple[Outcome, ...]:
        """Every op, `concurrency` of them at once; their outcomes in the plan's order.

        Raises AgentUnusable at once when the configuration can answer no op, and what is no failure of one op.
        """
        self._journal.event("batch_started", ops=len(self._work), concurrency=concurrency)
        self._progress.begin(len(self._work), lambda: self._purse.usd, lambda: self._pool.waiting)
        outcomes = {one.planned.op: self._earlier(one) for one in self._work}
        self._estimate([one for one in self._work if outcomes[one.planned.op] is None])
        todo = iter([one for one in self._work if outcomes[one.planned.op] is None])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._take(todo, outcomes))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # one message, not one an op
        ended = tuple(found for found in outcomes.values() if found is not None)
        self._journal.event("batch_ended", exit_code=outcome.exit_code(ended))
        return ended

    def _estimate(self, todo: Sequence[Work]) -> None:
        """What is likely to be spent, before anything is; replayed replies cost nothing."""
        paid = [one for one in todo if one.settings.agent.name != "recorded"]
        for sentence in accounts.estimated([accounts.estimate(self._ledger, one.op, one.settings) for one in paid]):
            self._progress.say(sentence)
            self._journal.event("estimated", text=sentence)

    async def _take(self, todo: Iterator[Work], outcomes: dict[str, Outcome | None]) -> None:
        """One op after the other, as long as there are any."""
        for work in todo:
            ended = await self._one(work)
            outcomes[ended.op] = ended
            self._progress.ended(ended, earlier=False)
            self._journal.event("op_ended", op=ended.op, run=ended.run, decision=ended.decision, reason=ended.reason)

    async def _one(self, work: Work) -> Outcome:
        """The one boundary at which the failure of an op is kept from the others."""
        op, run = work.planned.op, work.planned.run
        unanswered = False
        try:
            await self._run(work)
        except AgentUnusable:
            raise
        except RepliesExhausted as exhausted:
            error: OrchestratorError = exhausted
            unanswered = True
        except OrchestratorError as failed:
            error = failed
        else:
            found = outcome.of_decided(self._ledger, op, run)
            assert found is not None
            return found
        return outcome.of_error(self._ledger, op, run, error, unanswered=unanswered)

    async def _run(self, work: Work) -> None:
        op, settings, run = work.op, work.settings, work.planned.run
        agent = self._agents.of(op, settings)
        if not (self._workspaces / "runs" / run / RUN).is_file():
            self._purse.check()  # an op that could not ask anything is not begun
            self._progress.doing(op.name, "its test is being checked")
            self._progress.say(await opcheck.require(op, self._pool, settings.judge))
        asking = begins_with(settings.loop.given, Asking(agent, (Purse("op", settings.budget.op), self._purse)), op)
        watches = (Entering(self._ledger), Noting(self._journal, op.name, run), Showing(self._progress, op.name))
        judges = remembering(self._pool, op, settings, self._workspaces)
        with tracking.following(settings.mlflow, self._progress.say) as more:
            await run_op(op, asking, judges, settings, self._workspaces, Several(*watches, *more), run)

    def _earlier(self, work: Work) -> Outcome | None:
        """The outcome of an op that was over before this process began; what it cost counts."""
        op, run = work.planned.op, work.planned.run
        record = self._workspaces / "runs" / run / RUN
        if not record.is_file():
            return None
        found = outcome.of_decided(self._ledger, op, run)
        if found is None and self._is_over(from_json(Run, record.read_bytes())):
            ledger.refresh(self._ledger, record.parent)  # killed between the record and its row
            found = outcome.of_decided(self._ledger, op, run)
        if found is not None:
            self._purse.rounds += found.rounds
            self._purse.count(Usage(0.0, found.tokens, 0 if found.tokens is not None else None, cost_usd=found.usd))
            self._progress.ended(found, earlier=True)
        return found

    def _is_over(self, run: Run) -> bool:
        if run.verdict is None or run.error:
            return False
        if run.verdict.decision is not Decision.MERGE:
            return True
        return bool(Workspace.open(self._workspaces, run.op).open_run(run.id).merge_commit())
