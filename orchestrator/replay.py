"""An attempt of earlier judged again from its record: the stored reply, the same seed, the same settings.

Owns what "the same verdict" is: the same status, and every case that was judged ended as it did then. What the reply
becomes and how it is judged is `attempt`'s business, the same as in a run. Changes nothing of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.attempt import judge_kernel, judge_reply
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.past import Past
from orchestrator.records import Attempt, Judging, Record, Report, Status
from orchestrator.workspace import RunBranch, attempt_folder

_SHOWN = 5  # cases that ended otherwise


@dataclass(frozen=True)
class Replayed(Record):
    """What judging an attempt again came to, beside its verdict of then."""

    run: str
    attempt: int
    then: Report
    now: Report
    remarks: tuple[str, ...] = ()  # what was not as it was then: device, versions; what the record says since
    otherwise: dict[str, tuple[str, str]] = field(default_factory=dict)  # cases that ended so then, and so now

    @property
    def same(self) -> bool:
        """Whether the verdict is the same."""
        return self.then.status is self.now.status and not self.otherwise


@dataclass(frozen=True)
class Stored:
    """A run that can be replayed: its record, its branch, and the op, which is as it was."""

    past: Past
    branch: RunBranch
    op: Op


def stored(past: Past, load: Callable[[str], Op]) -> Stored:
    """The run, ready to be replayed. Raises UsageError where its repository is gone or its op has changed since."""
    branch = past.branch()
    if branch is None:
        raise UsageError(f"the repository of {past.run.op} is not in {past.workspaces}; copy it there with the runs")
    op = load(past.run.op)
    if dict(branch.files) != op.workspace_files():
        raise UsageError(
            f"the op {op.name} has changed since {past.run.id}, so its cases are others; nothing to repeat"
        )
    return Stored(past, branch, op)


def device(past: Past) -> str:
    """The kind of device that it was judged on: the same seed makes the same values there, and not on another kind."""
    judging = past.judging()
    return "cpu" if judging is not None and judging.interpreted else "auto"


async def replay(one: Stored, number: int, executor: Executor) -> Replayed:
    """Judge that attempt again. Raises UsageError where its reply is not kept."""
    attempt = one.past.attempt(number)
    reply = one.past.reply(attempt)
    if reply is None:
        raise UsageError(f"the reply of attempt {number} is not in {one.past.attempt_folder(attempt)}")
    judging = await executor.start()
    then = one.past.first_verdict(attempt)
    settings = one.past.settings().judge.model_copy(update={"seed": then.seed, "require_sandbox": False})
    with attempt_folder({}) as folder:
        if reply.in_tree:
            kernel = _left_in_tree(one, attempt)
            now = await judge_kernel(kernel, one.op, one.branch.export, executor, settings, folder)
        else:
            now = (await judge_reply(reply, one.op, one.branch, executor, settings, folder)).report
    remarks = (*_since(attempt, then), *(_elsewhere(then, judging) if then.nonce else ()))
    return Replayed(one.past.run.id, number, then, now, remarks, _otherwise(then, now))


def lines(result: Replayed) -> tuple[str, ...]:
    """What it came to, for a person."""
    said = "the same verdict" if result.same else "another verdict"
    head = f"{result.run}#{result.attempt}: {said}: {_short(result.then)} then, {_short(result.now)} now"
    cases = [f"  {name}: {was} then, {is_} now" for name, (was, is_) in list(result.otherwise.items())[:_SHOWN]]
    more = len(result.otherwise) - len(cases)
    return (head, *(f"  {one}" for one in result.remarks), *cases, *([f"  and {more} more cases"] if more else []))


def _left_in_tree(one: Stored, attempt: Attempt) -> bytes:
    """The kernel of an agent that worked in the tree. What else it left there is not kept, so a verdict on that is
    not repeated."""
    kernel = one.past.kernel(attempt, one.branch)
    if kernel is None or attempt.status in (Status.TAMPERED, Status.NO_CODE):
        raise UsageError(f"attempt {attempt.number} ended in {attempt.status} by its whole tree, which is not kept")
    return kernel


def _short(report: Report) -> str:
    counted = f" ({report.passed_cases} of {report.expected_cases} cases)" if report.cases else ""
    return f"{report.status}{counted}"


def _since(attempt: Attempt, then: Report) -> list[str]:
    if attempt.report == then:
        return []
    return [f"the record says {attempt.status} since: {attempt.report.message}; compared is the judge's first verdict"]


def _elsewhere(then: Report, now: Judging) -> list[str]:
    before, after = {"device": then.device, **then.versions}, {"device": now.device, **now.versions}
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [
        f"not as it was: {name} {before.get(name, 'unknown')} then, {after.get(name, 'unknown')} now"
        for name in differing
    ]


def _otherwise(then: Report, now: Report) -> dict[str, tuple[str, str]]:
    before, after = _statuses(then), _statuses(now)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: (before.get(name, "not judged"), after.get(name, "not judged")) for name in names}


def _statuses(report: Report) -> Mapping[str, str]:
    return {f"{case.name} (seed {case.seed})": str(case.status) for case in report.cases}
