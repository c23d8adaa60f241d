"""A batch, as the command line asks for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.batch import Agents, Work
    from orchestrator.config import Settings
    from orchestrator.outcome import Outcome
    from orchestrator.plan import Plan, Planned
    from orchestrator.progress import Progress


@dataclass(frozen=True)
class Asked:
    """What the command line says of a batch."""

    ops: str | None
    file: Path | None
    ops_dir: Path | None
    resume: bool
    concurrency: int
    judges: int | None
    quiet: bool
    as_json: bool


def carry_out(asked: Asked, settings: Callable[[dict[str, Any]], Settings], workspaces: Path) -> int:
    """The batch, to its table; the exit code. `settings` are those of an op with settings of its own."""
    from rich.console import Console

    from orchestrator import batch, outcome, plan, records
    from orchestrator.progress import Progress

    shared = settings({})  # what is wrong for all ops is said before the ops are looked at
    todo = _plan(asked, workspaces)

    def make(one: Planned) -> Work:
        own = one.wanted.settings
        return batch.Work(one, options.op(one.op, asked.ops_dir), settings(own) if own else shared)

    progress = Progress(Console(stderr=asked.as_json), quiet=asked.quiet)
    agents = batch.Agents(progress.say)
    ready = {one.op: make(one) for one in _left(asked, todo, workspaces)}
    batch.check(ready.values(), shared, agents, workspaces)
    with carry.output_kept(asked.as_json):
        outcomes = carry.through(
            _batch(asked, todo, ready, make, shared, agents, workspaces, progress),
            progress,
            f"interrupted; --resume goes on with {todo.id}",
        )
    progress.table(outcomes)
    if asked.as_json:
        typer.echo(records.to_json(outcomes))
    progress.say(f"log: {todo.folder(workspaces) / plan.LOG}")
    return outcome.exit_code(outcomes)


def _plan(asked: Asked, workspaces: Path) -> Plan:
    """The batch that is asked for; one that goes on must be of the ops that are named, if any are."""
    from orchestrator import plan

    def known() -> list[str]:
        return options.catalogue(asked.ops_dir).names()

    def take(entry: str) -> list[str]:
        return options.taken(entry, asked.ops_dir)

    wanted = None
    if asked.ops is not None:
        wanted = plan.named(asked.ops, known, take)
    elif asked.file is not None:
        wanted = plan.read(asked.file, known, take)
    if not asked.resume:
        assert wanted is not None
        return plan.new(wanted)
    newest = plan.newest(workspaces)
    if wanted is not None and wanted != tuple(one.wanted for one in newest.ops):
        names = ", ".join(one.op for one in newest.ops)
        raise UsageError(f"--resume goes on with {newest.id}, which is of {names}: leave the ops out, or --resume")
    return newest


def _left(asked: Asked, todo: Plan, workspaces: Path) -> tuple[Planned, ...]:
    """The ops that there is something to do for."""
    from orchestrator import outcome
    from orchestrator.ledger import Ledger

    if not asked.resume:
        return todo.ops
    with closing(Ledger(workspaces)) as index:
        over = outcome.earlier(index, todo.ops, workspaces)
    return tuple(one for one in todo.ops if one.op not in over)


async def _batch(
    asked: Asked,
    todo: Plan,
    ready: dict[str, Work],
    make: Callable[[Planned], Work],
    shared: Settings,
    agents: Agents,
    workspaces: Path,
    progress: Progress,
) -> tuple[Outcome, ...]:
    from orchestrator import batch
    from orchestrator.executors import pool
    from orchestrator.ledger import Ledger

    judges = pool.of(shared.judge, asked.judges, workspaces)
    try:
        with closing(Ledger(workspaces)) as index:

            def work_of(one: Planned) -> Work:
                return ready.pop(one.op, None) or make(one)  # of an op that is over nothing is kept

            means = batch.Means(work_of, shared.budget.batch, agents, judges, workspaces, index, progress)
            likely = batch.estimated(ready.values(), index)
            return await batch.carry_out(todo, means, asked.concurrency, likely)
    finally:
        await judges.close()
