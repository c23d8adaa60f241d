"""Which kernel is exported: an op's champion or a run's best, with all that is known of it.

Owns finding it. What must hold of a run that is taken up (it passed, its op is as it was) is `finish`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator import finish
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.records import Attempt, Run
from orchestrator.workspace import Workspace


@dataclass(frozen=True)
class Source:
    """A kernel and its evidence."""

    op: Op
    run: Run
    attempt: Attempt  # the run's best
    kernel: bytes
    files: dict[str, bytes]  # those that it was judged by: the baseline's
    measured: Measured | None  # of this attempt
    folder: Path  # the run's


def find(target: str, workspaces: Path, load: Callable[[str], Op]) -> Source:
    """The kernel of a run's id, or of an op's name. Raises UsageError that says how to come by one."""
    if (workspaces / "runs" / target).is_dir():
        return _of_run(target, workspaces, load)
    op = load(target)  # says which ops there are
    if not (workspaces / f"{op.name}.git").is_dir():
        raise UsageError(f"there is no kernel of {op.name} in {workspaces}: {_how(op.name)}")
    space = Workspace.open(workspaces, op.name)
    champion = space.champion(op.spec.kernel_name)
    if champion is None:
        raise UsageError(f"{op.name} has no champion in {workspaces}: {_how(op.name)}")
    found = _of_run(champion.run, workspaces, load)
    if champion.kernel != found.kernel:
        raise UsageError(
            f"main holds another kernel than {champion.run} ends with; name the run: export {champion.run}"
        )
    return found


def _how(op: str) -> str:
    return (
        f"`python -m orchestrator --op {op}` has one written, `adopt RUN --reason TEXT` makes a passed one the "
        "champion, and `export RUN` takes a run's best"
    )


def _of_run(run_id: str, workspaces: Path, load: Callable[[str], Op]) -> Source:
    ended = finish.find(run_id, workspaces, load)
    run, name = ended.run, ended.op.spec.kernel_name
    if run.best is None:
        raise UsageError(
            f"{run.id} has a kernel that passed and none that was accepted; `adopt {run.id} --reason TEXT` accepts it"
        )
    attempt = run.attempts[run.best - 1]
    kernel = ended.branch.workspace.read_at(name, str(attempt.commit))
    if kernel is None:
        raise WorkspaceError(f"commit {attempt.commit} of {run.id} holds no {name}; was its repository copied whole?")
    measured = ended.measured(run.best)
    return Source(ended.op, run, attempt, kernel, dict(ended.branch.files), measured, ended.folder)
