"""What was tried on an op before, in a few lines for a model: each attempt of earlier runs and how it ended.

Owns which of the record is told. Only runs of the same op count: those whose test and specification are the same. Read
from the run folders, which are the truth; decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from orchestrator import kept, rounds
from orchestrator.errors import WorkspaceError
from orchestrator.records import Attempt, Report, Run, from_json
from orchestrator.text import printable
from orchestrator.workspace import RunBranch

_LINES = 8
_RUNS = 20  # that are looked through
_WORDS = 200  # characters of what was wrong


def lines(current: Run, branch: RunBranch, runs: Path) -> tuple[str, ...]:
    """The newest last. What ended alike is one line."""
    told = [line for run in (*_earlier(current, branch, runs), current) for line in _of(run)]
    counted = Counter(told)
    newest = list(dict.fromkeys(reversed(told)))[:_LINES]
    return tuple(f"{line}{f' ({counted[line]} times)' if counted[line] > 1 else ''}" for line in reversed(newest))


def _earlier(current: Run, branch: RunBranch, runs: Path) -> Iterator[Run]:
    """The other runs of this op as it is now, oldest first."""
    same = {current.baseline: True}
    found = []
    for folder in kept.runs_of(current.op, runs)[-_RUNS:]:
        with suppress(OSError, ValidationError):
            found.append(from_json(Run, (folder / "run.json").read_bytes()))
    for run in sorted(found, key=lambda run: run.started):
        if run.op != current.op or run.id == current.id:
            continue
        if run.baseline not in same:
            same[run.baseline] = _is_same(branch, run.baseline)
        if same[run.baseline]:
            yield run


def _is_same(branch: RunBranch, baseline: str) -> bool:
    with suppress(WorkspaceError):  # a branch that somebody removed
        return all(branch.workspace.read_at(name, baseline) == data for name, data in branch.files.items())
    return False


def _of(run: Run) -> Iterator[str]:
    for attempt in run.attempts:
        if rounds.answered(attempt) and (ended := _ended(run, attempt)):
            yield f"{attempt.stage}: {attempt.status}, {ended}"


def wrong(report: Report) -> str:
    """What was wrong with an attempt that was not accepted, in one line."""
    if not report.passed:
        return printable((report.diagnosis or (report.message,))[0], _WORDS)
    return printable(f"not accepted: the audit establishes {report.grave[0].message}", _WORDS)


def _ended(run: Run, attempt: Attempt) -> str:
    """What was wrong with it, or what it was worth; "" where nobody knows what a correct one is worth."""
    if not attempt.report.accepted:
        return wrong(attempt.report)
    if attempt.number == run.best and run.measurement is not None:
        measured = run.measurement
        return (
            f"{measured.speedup_low:.2f} to {measured.speedup_high:.2f} times the speed of "
            f"{printable(measured.baseline, _WORDS)}, {100 * measured.roofline_share:.0f} % of the ceiling"
        )
    said = [remark for remark in run.remarks if remark.startswith(f"Attempt {attempt.number} ")]
    return printable(said[0].split(" ", 2)[2], _WORDS) if said else ""
