"""The records of a night: what it found of each champion, what it generated, what a person must see.

Owns the shape of nights/<id>/ on disk and what a night comes to as an exit code. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import UsageError
from orchestrator.nights.due import Due
from orchestrator.outcome import FAILED, Outcome
from orchestrator.records import Judging, Record, Status, from_json

T = TypeVar("T")

FOLDER = "nights"
BEGUN, CHECKED, PLAN, NIGHT, REPORT, LOG = (
    *("begun.json", "checked.json", "batch.json", "night.json", "night.md", "log.jsonl"),
)


@dataclass(frozen=True)
class Standing(Record):
    """A champion as the night found it."""

    op: str
    commit: str  # on main
    run: str  # '' where it was put there by hand
    sha256: str  # of the kernel


@dataclass(frozen=True)
class Begun(Record):
    """A night that has begun: what it is to look at, and where. Written before anything is done."""

    id: str
    started: str  # ISO 8601, UTC
    judging: Judging
    champions: tuple[Standing, ...]
    orphans: tuple[str, ...] = ()  # repositories with a champion of an op that there is no more

    def folder(self, workspaces: Path) -> Path:
        """Where the night keeps everything."""
        return workspaces / FOLDER / self.id


@dataclass(frozen=True)
class Drift(Record):
    """A speedup over one baseline, then and now: the ends of the intervals, over shapes that count in both."""

    baseline: str
    then_low: float
    then_high: float
    now_low: float
    now_high: float


@dataclass(frozen=True)
class Speed(Record):
    """A champion timed tonight, and against its own record."""

    gpu: str
    baseline: str  # the fastest
    speedup_low: float
    speedup_high: float
    roofline_share: float
    noise: float
    record: str  # where its own record is: a run, an earlier night; '' where there is none to compare with
    drifts: tuple[Drift, ...] = ()
    slower: bool = False  # against every baseline that both sessions timed, beyond the margin


@dataclass(frozen=True)
class Checked(Record):
    """A champion, judged tonight."""

    standing: Standing
    status: Status
    message: str
    passed_cases: int
    cases: int
    again: Status | None = None  # of a second verdict, or timing, with the same values, where the first was not PASSED
    grave: tuple[str, ...] = ()  # what the audit found of severity high
    speed: Speed | None = None
    unmeasured: str = ""  # why it was not timed

    @property
    def op(self) -> str:
        """The op's name."""
        return self.standing.op

    @property
    def holds(self) -> bool:
        """It passed."""
        return self.status is Status.PASSED

    @property
    def unjudged(self) -> bool:
        """There is no verdict, and the reason is ours."""
        return Status.INFRASTRUCTURE in (self.status, self.again)

    @property
    def fell(self) -> bool:
        """It failed, and failed again: it is the champion no more."""
        return not (self.holds or self.unjudged or self.again is Status.PASSED)


@dataclass(frozen=True)
class Regression(Record):
    """Something that was better before."""

    op: str
    what: str  # in a word or two
    text: str


@dataclass(frozen=True)
class Night(Record):
    """What a night came to."""

    begun: Begun
    checked: tuple[Checked, ...]
    demotions: dict[str, str]  # by op: the commit that took the champion off main
    due: tuple[Due, ...]
    generated: tuple[Outcome, ...]
    regressions: tuple[Regression, ...]
    since: tuple[str, ...]  # what else is different from the last night, in words
    last: str  # the id of the last night; '' where this is the first
    trouble: str = ""  # why nothing more was generated, where that was a failure
    trouble_code: int = 0
    pruned: int = 0  # job folders
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """1 a regression; else what generating came to where it could not be; 3 where something was left unjudged."""
        if self.regressions:
            return 1
        failed = any(one.unjudged for one in self.checked) or any(one.decision == FAILED for one in self.generated)
        return self.trouble_code or (3 if failed else 0)


def last(workspaces: Path) -> Night | None:
    """The newest night that came to its end."""
    ended = list((workspaces / FOLDER).glob(f"*/{NIGHT}"))
    return _read(Night, max(ended, key=_name)) if ended else None


def unfinished(workspaces: Path) -> Begun | None:
    """The newest night, if it did not come to its end."""
    begun = list((workspaces / FOLDER).glob(f"*/{BEGUN}"))
    newest = max(begun, key=_name, default=None)
    return None if newest is None or (newest.parent / NIGHT).exists() else _read(Begun, newest)


def _name(file: Path) -> str:
    """The night's, which begins with its date."""
    return file.parent.name


def _read(kind: type[T], file: Path) -> T:
    try:
        return from_json(kind, file.read_bytes())
    except ValueError as error:
        raise UsageError(f"{file} is no record of a night that this program can read; move it away") from error
