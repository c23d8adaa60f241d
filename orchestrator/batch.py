"""Many ops at once, unattended: which run next, what becomes of a failure, where it goes on after a kill.

Owns the order of ops and the boundary at which the failure of one is kept from the others. A run is the loop's, waiting
for a judge the pool's, waiting for a provider the agents'. Only a configuration that can answer nothing stops them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import accounts, heap, opcheck, outcome, plan, tracing, tracking
from orchestrator.agents import Agent
from orchestrator.agents.choose import choose
from orchestrator.agents.given import Nobody
from orchestrator.agents.recorded import INDEX, RepliesExhausted
from orchestrator.asking import Asking, Purse, begins_with
from orchestrator.config import AgentSettings, Budget, Settings
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
from orchestrator.records import Usage
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

    def __init__(self, announce: Callable[[str], None], needs: str = "a batch needs a model") -> None:
        self._announce = announce
        self._needs = needs
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
        return choose(
            name,
            op_recorded=recorded,
            single_op=False,
            options=options,
            announce=self._announce,
            needs=self._needs,
        )


def _key(settings: Settings) -> tuple[AgentSettings, bool]:
    """What an agent is made of."""
    return settings.agent, settings.judge.require_sandbox


def check(work: Iterable[Work], shared: Settings, agents: Agents, workspaces: Path) -> None:
    """Whatever would stop the batch later, before anything is written. Raises OrchestratorError."""
    for one in work:
        settings, name = one.settings, one.planned.op
        where = [(one.judge.executor, one.judge.device, one.budget.batch) for one in (settings, shared)]
        if where[0] != where[1]:
            raise UsageError(f"{name}: judge.executor, judge.device and budget.batch are the batch's, not an op's")
        priced = settings.agent.name == "recorded" or settings.agent.prices is not None
        if not priced and (settings.budget.op.usd or settings.budget.batch.usd):
            raise UsageError(f"{name}: a budget in usd needs a table of prices: -c agent.prices=FILE")
        agents.prepare(settings)
        begins_with(settings.loop.given, Nobody(), one.op)
        tracing.watchers()
        if settings.mlflow.log:
            tracking.require()
        if (workspaces / f"{name}.git").exists():
            Workspace.open(workspaces, name)


def estimated(work: Iterable[Work], index: Ledger) -> Iterable[str]:
    """What is likely to be spent, before anything is; replayed replies cost nothing."""
    paid = [one for one in work if one.settings.agent.name != "recorded"]
    return accounts.estimated([accounts.estimate(index, one.op, one.settings) for one in paid])


@dataclass(frozen=True)
class Means:
    """What a batch works with. `work_of` makes ready what an op needs, when its turn comes."""

    work_of: Callable[[Planned], Work]
    budget: Budget  # of the whole batch
    agents: Agents
    pool: Pool
    workspaces: Path
    index: Ledger
    progress: Progress


async def carry_out(todo: Plan, means: Means, concurrency: int, likely: Iterable[str] = ()) -> tuple[Outcome, ...]:
    """Begin a plan, or go on with it, to its end. Its plan is kept before anything is done, and nobody else does it.

    `likely` is what it is estimated to cost, in sentences, which are said and logged.
    """
    heap.give_back_large_blocks()
    plan.keep(todo, means.workspaces)
    with plan.held(todo, means.workspaces):
        journal = Journal(todo.folder(means.workspaces) / plan.LOG, batch=todo.id)
        for sentence in likely:
            means.progress.say(sentence)
            journal.event("estimated", text=sentence)
        return await Batch(todo, means, journal).run(concurrency)


class Batch:
    """One plan being carried out. Of an op that is over it keeps the outcome alone."""

    def __init__(self, todo: Plan, means: Means, journal: Journal) -> None:
        self._ops = todo.ops
        self._work_of = means.work_of
        self._agents = means.agents
        self._pool = means.pool
        self._workspaces = means.workspaces
        self._ledger = means.index
        self._progress = means.progress
        self._journal = journal
        self._purse = Purse("batch", means.budget)

    async def run(self, concurrency: int) -> tuple[Outcome, ...]:
        """Every op, `concurrency` of them at once; their outcomes in the plan's order.

        Raises AgentUnusable at once when the configuration can answer no op, and what is no failure of one op.
        """
        self._journal.event("batch_started", ops=len(self._ops), concurrency=concurrency)
        self._progress.begin(len(self._ops), lambda: self._purse.usd, lambda: self._pool.waiting)
        found = outcome.earlier(self._ledger, self._ops, self._workspaces)
        for one in found.values():
            self._count(one)
        outcomes = {one.op: found.get(one.op) for one in self._ops}
        todo = iter([one for one in self._ops if one.op not in found])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._take(todo, outcomes))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # one message, not one an op
        ended = tuple(found for found in outcomes.values() if found is not None)
        self._journal.event("batch_ended", exit_code=outcome.exit_code(ended))
        return ended

    async def _take(self, todo: Iterator[Planned], outcomes: dict[str, Outcome | None]) -> None:
        """One op after the other, as long as there are any."""
        for planned in todo:
            ended = await self._one(planned)
            outcomes[ended.op] = ended
            self._progress.ended(ended, earlier=False)
            self._journal.event("op_ended", op=ended.op, run=ended.run, decision=ended.decision, reason=ended.reason)

    async def _one(self, planned: Planned) -> Outcome:
        """The one boundary at which the failure of an op is kept from the others."""
        unanswered = False
        try:
            await self._run(self._work_of(planned))
        except AgentUnusable:
            raise
        except RepliesExhausted as exhausted:
            error: OrchestratorError = exhausted
            unanswered = True
        except OrchestratorError as failed:
            error = failed
        else:
            return outcome.decided(self._ledger, [planned])[planned.op]
        return outcome.of_error(self._ledger, planned, error, unanswered=unanswered)

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
            watch = Several(*watches, *more, *tracing.watchers())
            await run_op(op, asking, judges, settings, self._workspaces, watch, run)

    def _count(self, earlier: Outcome) -> None:
        """What an op cost that was over before this process began."""
        self._purse.rounds += earlier.rounds
        tokens = 0 if earlier.tokens is not None else None
        self._purse.count(Usage(0.0, earlier.tokens, tokens, cost_usd=earlier.usd))
        self._progress.ended(earlier, earlier=True)
