"""A run of earlier: found by its id, and what its folder and its branch keep of it.

Owns the ways in which a person names a run or an attempt, and reading what is kept. Changes nothing, and makes nothing
where there is nothing: a folder without its repository stays readable.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from orchestrator import config, kept
from orchestrator.attempt import REPORT
from orchestrator.errors import UsageError
from orchestrator.measured import Measured
from orchestrator.measuring import MEASURED
from orchestrator.measuring import kept as kept_measured
from orchestrator.ops.spec import kernel_name
from orchestrator.recorder import ENVIRONMENT, MEASUREMENTS, RUN, SETTINGS
from orchestrator.records import Attempt, Judging, Reply, Report, Run, from_json
from orchestrator.text import printable
from orchestrator.workspace import RunBranch, Workspace

RUNS = "runs"
_OP = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Timed:
    """One measurement of a run."""

    number: int
    attempt: int
    measured: Measured


@dataclass(frozen=True)
class Past:
    """A run's record, and where the rest of it lies."""

    run: Run
    folder: Path

    @property
    def workspaces(self) -> Path:
        """The folder of repositories and runs."""
        return self.folder.parent.parent

    def attempt(self, number: int) -> Attempt:
        """That attempt. Raises UsageError where the run has none of this number."""
        if not 1 <= number <= len(self.run.attempts):
            raise UsageError(f"{self.run.id} has no attempt {number}; it has {len(self.run.attempts)}")
        return self.run.attempts[number - 1]

    def attempt_folder(self, attempt: Attempt) -> Path:
        """Where the attempt's prompt, reply and verdict are."""
        return kept.folder(self.folder, attempt.number, attempt.stage, attempt.round)

    def reply(self, attempt: Attempt) -> Reply | None:
        """The reply as it came; None where it is not kept any more."""
        folder = self.attempt_folder(attempt)
        return kept.reply(folder) if kept.has_reply(folder) else None

    def first_verdict(self, attempt: Attempt) -> Report:
        """The judge's verdict on the reply. What timing or judging anew made of it later is in the run's record."""
        path = self.attempt_folder(attempt) / REPORT
        return from_json(Report, path.read_bytes()) if path.is_file() else attempt.report

    def judging(self) -> Judging | None:
        """Where it was judged last; None where it is not kept."""
        path = self.folder / ENVIRONMENT
        return from_json(Judging, path.read_bytes()) if path.is_file() else None

    def settings(self) -> config.Settings:
        """The settings that it was begun with."""
        return config.kept(self.folder / SETTINGS)

    def measurements(self) -> tuple[Timed, ...]:
        """Every measurement that was finished, in order."""
        return tuple(
            Timed(int(place.parent.name), kept.against(place.parent).attempt, kept_measured(place.parent))
            for place in sorted((self.folder / MEASUREMENTS).glob(f"*/{MEASURED}"))
            if (place.parent / kept.AGAINST).is_file()
        )

    def branch(self) -> RunBranch | None:
        """Its branch; None where its repository is not here."""
        if not (self.workspaces / f"{self.run.op}.git").is_dir():
            return None
        return Workspace.open(self.workspaces, self.run.op).open_run(self.run.id)

    def kernel(self, attempt: Attempt, branch: RunBranch | None) -> bytes | None:
        """The attempt's kernel file as it was committed; None where there is none."""
        if branch is None or attempt.commit is None:
            return None
        return branch.workspace.read_at(kernel_name(self.run.op), attempt.commit)


def parse(text: str) -> tuple[str, int | None]:
    """RUN or RUN#ATTEMPT as a run's id and an attempt's number. Raises UsageError where that is no number."""
    run, sharp, number = text.partition("#")
    if sharp and not (number.isascii() and number.isdigit()):
        raise UsageError(f"{printable(text)}: after # goes the number of an attempt, such as {printable(run)}#1")
    return run, int(number) if sharp else None


def find(run_id: str, workspaces: Path) -> Past:
    """The run of that id. Raises UsageError where there is none, or its record cannot be read."""
    known = [path.name for path in folders(workspaces)]
    if run_id not in known:
        close = difflib.get_close_matches(run_id, known, n=1)
        hint = f"did you mean {close[0]}" if close else f"there are {len(known)}; --workspaces DIR names another place"
        raise UsageError(f"no run {printable(run_id)} in {workspaces / RUNS}: {hint}")
    return read(workspaces / RUNS / run_id)


def folders(workspaces: Path) -> list[Path]:
    """The folders of all runs."""
    return sorted(path.parent for path in (workspaces / RUNS).glob(f"*/{RUN}"))


def read(folder: Path) -> Past:
    """The run of that folder. Raises UsageError where its record cannot be read."""
    try:
        run = from_json(Run, (folder / RUN).read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{folder / RUN} is no record of a run that this program can read") from error
    if run.id != folder.name or not _OP.fullmatch(run.op):  # both become names of files
        raise UsageError(f"{folder / RUN} is the record of {printable(run.id)}, which is not its folder's name")
    return Past(run, folder)
