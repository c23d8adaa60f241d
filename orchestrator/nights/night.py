"""A night from its beginning to its report: champions judged again, those that fell demoted, new kernels where it pays.

Owns the order, that two nights do not meet, and where a night that was killed goes on. A night goes on only under the
judge that it began with: with another torch or card what it had found would be of yesterday, and a new one begins.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import batch, locks, plan
from orchestrator.batch import Agents, Work
from orchestrator.config import Settings
from orchestrator.errors import OrchestratorError, UsageError
from orchestrator.executors.pool import Pool
from orchestrator.journal import Journal
from orchestrator.ledger import Ledger, Newest
from orchestrator.nights import champions, compare, report, retention, story
from orchestrator.nights.champions import Held
from orchestrator.nights.due import Due, Known, due
from orchestrator.nights.reverify import reverify
from orchestrator.nights.story import Begun, Checked, Night
from orchestrator.ops import Op
from orchestrator.outcome import Outcome
from orchestrator.plan import Plan, Wanted
from orchestrator.progress import Progress
from orchestrator.records import Judging, from_json, to_json
from orchestrator.tree import os_errors, write_whole
from orchestrator.workspace import Workspace

_DAY_S = 86400.0


def held(workspaces: Path) -> AbstractContextManager[None]:
    """Hold the nights: only one at a time. Ends with the process."""
    with os_errors(f"make {workspaces / story.FOLDER}"):
        (workspaces / story.FOLDER).mkdir(parents=True, exist_ok=True)
    refusal = f"another process is at a night in {workspaces}; wait for it or end it"
    return locks.held(workspaces / story.FOLDER / "lock", refusal)


@dataclass(frozen=True)
class Means:
    """What a night works with."""

    workspaces: Path
    names: Sequence[str]  # of all ops
    load: Callable[[str], Op]
    settings: Settings
    pool: Pool
    agents: Agents
    index: Ledger
    progress: Progress


async def carry_out(means: Means) -> Night:
    """Begin a night, or go on with the one that was killed, to its report. The nights must be held."""
    since, last = time.monotonic(), story.last(means.workspaces)
    begun = _begin(means, await means.pool.start())
    folder = begun.folder(means.workspaces)
    journal = Journal(folder / story.LOG, night=begun.id)
    journal.event("night_started", device=begun.judging.device, champions=len(begun.champions))
    standing = [champions.of(one, means.workspaces, means.load(one.op)) for one in begun.champions]
    checked = await _checked(means, begun, standing, journal)
    demotions = {
        one.op: champions.demote(one, held, means.workspaces, begun.id)
        for one, held in zip(checked, standing, strict=True)
        if one.fell
    }
    wanted, generated, trouble = await _generated(means, folder, checked)
    night = Night(
        begun=begun,
        checked=checked,
        demotions=demotions,
        due=wanted,
        generated=generated,
        regressions=compare.regressions(checked, last),
        since=compare.since(begun, checked, last),
        last=last.begun.id if last is not None else "",
        trouble=str(trouble or ""),
        trouble_code=trouble.exit_code if trouble is not None else 0,
        pruned=retention.prune(means.workspaces, time.time() - means.settings.night.keep_days * _DAY_S),
        seconds=round(time.monotonic() - since, 1),
    )
    write_whole(folder / story.REPORT, report.to_markdown(night))
    write_whole(folder / story.NIGHT, to_json(night))  # from here on it is over
    journal.event("night_ended", exit_code=night.exit_code, regressions=len(night.regressions))
    return night


def _begin(means: Means, judging: Judging) -> Begun:
    """The night that is to be carried out, written down."""
    earlier = story.unfinished(means.workspaces)
    if earlier is not None and earlier.judging == judging:
        means.progress.say(f"going on with the night of {earlier.id}")
        return earlier
    now = datetime.now(UTC)
    found, orphans = champions.found(means.workspaces, means.names, means.load)
    standing = tuple(one.standing for one in found)
    name = _free_name(means.workspaces, f"{now:%Y-%m-%d}")
    begun = Begun(name, now.isoformat(timespec="seconds"), judging, standing, orphans)
    with os_errors(f"make {begun.folder(means.workspaces)}"):
        begun.folder(means.workspaces).mkdir(parents=True)
    write_whole(begun.folder(means.workspaces) / story.BEGUN, to_json(begun))
    return begun


def _free_name(workspaces: Path, date: str) -> str:
    """The date, with a number from the second night of a day on."""
    taken = {path.name for path in (workspaces / story.FOLDER).glob(f"{date}*")}
    names = [date, *(f"{date}-{number:02}" for number in range(2, 100))]  # in the order in which names sort
    if not (free := [name for name in names if name not in taken]):
        raise UsageError(f"there were 99 nights on {date}; move some of {workspaces / story.FOLDER} away")
    return free[0]


async def _checked(means: Means, begun: Begun, standing: Sequence[Held], journal: Journal) -> tuple[Checked, ...]:
    """Every champion, as many at once as there are judges."""

    async def one(held: Held) -> Checked:
        folder = begun.folder(means.workspaces) / "champions" / held.op.name
        found = await reverify(held, means.pool, means.settings, begun.judging, means.workspaces, folder)
        means.progress.say(f"{found.op}: {found.status}: {found.message}")
        journal.event("champion_checked", op=found.op, status=found.status, message=found.message)
        return found

    return tuple(await asyncio.gather(*(one(held) for held in standing)))


async def _generated(
    means: Means, folder: Path, checked: Sequence[Checked]
) -> tuple[tuple[Due, ...], tuple[Outcome, ...], OrchestratorError | None]:
    """What was due, what came of it, and what ended it before its time."""
    file = folder / story.PLAN
    if file.is_file():  # of a night that was killed: what it wanted is what is carried out
        planned = from_json(_Wanted, file.read_bytes())
    else:
        wanted = due(_known(means, checked), means.settings.night.generate)
        planned = _Wanted(wanted, plan.new([Wanted(one.op) for one in wanted]))
        write_whole(file, to_json(planned))
    if not planned.due:
        return (), (), None
    shared = means.settings
    ready = batch.Means(
        *(lambda one: Work(one, means.load(one.op), shared), shared.budget.batch, means.agents, means.pool),
        *(means.workspaces, means.index, means.progress),
    )
    try:
        work = [ready.work_of(one) for one in planned.plan.ops]
        batch.check(work, shared, means.agents, means.workspaces)
        likely = batch.estimated(work, means.index)
        outcomes = await batch.carry_out(planned.plan, ready, shared.night.concurrency, likely)
    except OrchestratorError as error:  # what was found of the champions is told all the same
        return planned.due, (), error
    return planned.due, outcomes, None


@dataclass(frozen=True)
class _Wanted:
    """What a night generates for, and the batch that does it."""

    due: tuple[Due, ...]
    plan: Plan


def _known(means: Means, checked: Sequence[Checked]) -> list[Known]:
    """What is known of each op that may be generated for."""
    newest, tonight = means.index.newest(), {one.op: one for one in checked}
    names = [name for name in means.names if name in (means.settings.night.ops or means.names)]
    return [_known_of(means, means.load(name), newest.get(name), tonight.get(name)) for name in names]


def _not_after(started: datetime, demoted: datetime) -> bool:
    """git knows when a champion was demoted to the second; a run that began within it began before."""
    return started.replace(microsecond=0) <= demoted


def _known_of(means: Means, op: Op, newest: Newest | None, tonight: Checked | None) -> Known:
    begun = (means.workspaces / f"{op.name}.git").exists()
    space = Workspace.open(means.workspaces, op.name) if begun else None
    demoted = space.last_demotion() if space is not None else None
    champion = tonight is not None and not tonight.fell
    return Known(
        op=op.name,
        last=newest.decision if newest is not None else None,
        champion=champion,
        fell=not champion and demoted is not None and (newest is None or _not_after(newest.started, demoted)),
        changed=space is not None and not space.is_baseline(op.workspace_files()),
        share=tonight.speed.roofline_share if tonight is not None and tonight.speed is not None else None,
        enough=op.spec.thresholds(means.settings.decision).roofline_share,
    )
