"""What the site is made from: the runs of a workspaces folder, each read once.

Owns which runs are chosen and what is read of them. A run that cannot be read is named, and the others are told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from orchestrator import past
from orchestrator.decide import Thresholds
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.ops.spec import kernel_name
from orchestrator.past import Past, Timed
from orchestrator.plan import FILE, FOLDER, Plan
from orchestrator.records import Attempt, Decision, Judging, Run, Status, from_json
from orchestrator.text import printable
from orchestrator.workspace import RunBranch, Workspace


@dataclass(frozen=True)
class Tried:
    """An attempt, the words of its reply and its kernel file, where they are kept."""

    attempt: Attempt
    reply: str | None = None
    kernel: str | None = None


@dataclass(frozen=True)
class Told:
    """A run with everything that is told of it."""

    run: Run
    title: str  # the op's
    thresholds: Thresholds
    tried: tuple[Tried, ...] = ()
    timed: tuple[Timed, ...] = ()
    judging: Judging | None = None
    stages: tuple[str, ...] = ()
    rounds: int = 0
    persist: bool = False
    merge_commit: str = ""

    @property
    def measured(self) -> Measured | None:
        """The measurement that the decision rests on: the last whole one of the best attempt."""
        if self.run.measurement is None:
            return None
        of_best = [one.measured for one in self.timed if one.attempt == self.run.best]
        return next((one for one in reversed(of_best) if one.status is Status.PASSED), None)

    @property
    def merged(self) -> bool:
        """Whether its kernel became the champion."""
        return not self.run.error and self.run.verdict is not None and self.run.verdict.decision is Decision.MERGE


@dataclass(frozen=True)
class Night:
    """A batch: when it began, and its runs."""

    id: str
    started: str
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Gathered:
    """All runs, oldest first, which of them have a page, and all batches, those of nights too, oldest first."""

    told: tuple[Told, ...]
    chosen: frozenset[str]
    nights: tuple[Night, ...]
    unreadable: tuple[str, ...]
    champions: frozenset[str] = frozenset()  # the runs whose kernel stands on main now


def gather(workspaces: Path, choose: Choice, load: Callable[[str], Op]) -> Gathered:
    """Everything that the site tells. Raises UsageError where there is no run, or none is chosen."""
    known, unreadable = [], []
    for folder in past.folders(workspaces):
        try:
            known.append(past.read(folder))
        except UsageError as error:
            unreadable.append(str(error))
    known.sort(key=lambda one: (one.run.started, one.run.id))
    nights = _nights(workspaces)
    chosen = choose(known, nights, workspaces)
    told = []
    for one in known:
        try:
            told.append(_told(one, load, whole=one.run.id in chosen))
        except (UsageError, WorkspaceError, ValidationError, ValueError) as error:
            unreadable.append(f"{one.run.id}: {printable(str(error), 300)}")
    champions = frozenset(_champion(workspaces, op) for op in {one.run.op for one in told})
    return Gathered(tuple(told), chosen & {one.run.id for one in told}, nights, tuple(unreadable), champions)


# Which runs get a page: (all runs, all batches, where they are) to run ids.
Choice = Callable[[list[Past], tuple[Night, ...], Path], frozenset[str]]


def everything(known: list[Past], nights: tuple[Night, ...], workspaces: Path) -> frozenset[str]:
    """All runs. Raises UsageError where there is none."""
    if not known:
        raise UsageError(f"no run in {workspaces / past.RUNS} to report on; --workspaces DIR names another place")
    return frozenset(one.run.id for one in known)


def last(known: list[Past], nights: tuple[Night, ...], workspaces: Path) -> frozenset[str]:
    """The newest run."""
    everything(known, nights, workspaces)
    return frozenset({known[-1].run.id})


def night(known: list[Past], nights: tuple[Night, ...], workspaces: Path) -> frozenset[str]:
    """The runs of the newest batch that has begun any. Raises UsageError where there is none."""
    begun = {one.run.id for one in known}
    for one in reversed(nights):
        if runs := begun & set(one.runs):
            return frozenset(runs)
    raise UsageError(f"no batch in {workspaces / FOLDER} has a run to report on; --last takes the newest run")


def named(run: str) -> Choice:
    """That run."""

    def one(known: list[Past], nights: tuple[Night, ...], workspaces: Path) -> frozenset[str]:
        return frozenset({past.find(run, workspaces).run.id})

    return one


def _nights(workspaces: Path) -> tuple[Night, ...]:
    plans = []
    for path in (workspaces / FOLDER).glob(f"*/{FILE}"):  # those of nights too
        try:
            plans.append(from_json(Plan, path.read_bytes()))
        except ValidationError:
            continue  # of another version: its runs are told all the same
    plans.sort(key=lambda plan: (plan.started, plan.id))
    return tuple(Night(plan.id, plan.started, tuple(one.run for one in plan.ops)) for plan in plans)


def _champion(workspaces: Path, op: str) -> str:
    """The run whose kernel stands on main now; "" where none does: one may have been demoted, or put there by hand."""
    if not (workspaces / f"{op}.git").is_dir():
        return ""
    champion = Workspace.open(workspaces, op).champion(kernel_name(op))
    return champion.run if champion is not None else ""


def _told(one: Past, load: Callable[[str], Op], *, whole: bool) -> Told:
    """A run; of one without a page of its own, only what the overview and its op's page say of it."""
    settings, branch = one.settings(), one.branch()
    told = Told(one.run, *_of_op(one.run.op, settings.decision, load), timed=one.measurements())
    told = replace(
        told,
        judging=one.judging(),
        stages=settings.loop.stages,
        rounds=settings.loop.rounds,
        persist=settings.loop.persist,
        merge_commit=branch.merge_commit() if branch is not None and told.merged else "",
    )
    if not whole:
        return told
    return replace(told, tried=tuple(_tried(one, attempt, branch) for attempt in one.run.attempts))


def _of_op(name: str, decision: Thresholds, load: Callable[[str], Op]) -> tuple[str, Thresholds]:
    """An op's title and thresholds; of one that is not there any more, its name and those of the settings."""
    try:
        spec = load(name).spec
    except UsageError:
        return name, decision
    return spec.title, spec.thresholds(decision)


def _tried(one: Past, attempt: Attempt, branch: RunBranch | None) -> Tried:
    reply, kernel = one.reply(attempt), one.kernel(attempt, branch)
    if attempt.status is Status.NO_CODE:
        kernel = None  # what its commit holds is an earlier attempt's
    text = None if kernel is None else kernel.decode("utf-8", "replace")
    return Tried(attempt, None if reply is None else reply.text, text)
