"""Job folders of long ago: which may go, and removing them.

Owns the rule. A job folder holds a copy of the test files and the kernel, both of which git has; prompts, replies,
reports and measurements are never touched. Nor is anything of a run whose kernel was accepted, or of one that is not
over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.nights.story import FOLDER
from orchestrator.recorder import RUN
from orchestrator.records import Decision, Run, from_json
from orchestrator.tree import os_errors, remove_tree

_JOBS = ("attempts/*/job", "measurements/*/job", "sweeps/*/job", "judged-again/*/job")
_OF_NIGHTS = ("champions/*/job", "champions/*/*/job")
_ACCEPTED = (Decision.MERGE, Decision.UNMEASURED)


def prune(workspaces: Path, older_than: float) -> int:
    """Remove the job folders last changed before that time (seconds since the epoch). Returns how many."""
    gone = 0
    for job in (*_of_runs(workspaces, older_than), *_of_nights(workspaces, older_than)):
        remove_tree(job)
        gone += 1
    return gone


def _of_runs(workspaces: Path, older_than: float) -> Iterator[Path]:
    for run in sorted((workspaces / "runs").glob("*")):
        jobs = _old(run, _JOBS, older_than)
        if jobs and _rejected(run / RUN):
            yield from jobs


def _of_nights(workspaces: Path, older_than: float) -> Iterator[Path]:
    for night in sorted((workspaces / FOLDER).glob("*")):
        yield from _old(night, _OF_NIGHTS, older_than)


def _old(folder: Path, patterns: tuple[str, ...], older_than: float) -> list[Path]:
    with os_errors(f"read {folder}"):
        return [
            path
            for pattern in patterns
            for path in sorted(folder.glob(pattern))
            if not path.is_symlink() and path.is_dir() and path.stat().st_mtime < older_than
        ]


def _rejected(record: Path) -> bool:
    """Whether that run is over and brought nothing that was kept."""
    try:
        run = from_json(Run, record.read_bytes())
    except (OSError, ValueError):
        return False  # not ours to throw away
    return run.verdict is not None and not run.error and run.verdict.decision not in _ACCEPTED
