"""The ledger: an index over git and the run folders, for questions that cross runs. They are the truth, it is not.

Owns workspaces/ledger.sqlite: its tables, its version and how an older one becomes the current one, the row that each
record becomes, and making all of it again from what it indexes. A run's rows are written as its steps happen, by a
watcher; the same functions make them again from the run's folder, so both come to the same. Decides nothing: no step of
a run reads it, and a lost ledger costs `ledger rebuild` and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator import kept, past
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.measured import Measured
from orchestrator.recorder import ENVIRONMENT, RUN
from orchestrator.records import Attempt, Judging, Reply, Run, from_json
from orchestrator.watch import Several, Silent, Watch
from orchestrator.workspace import Workspace

NAME = "ledger.sqlite"
_WAIT_S = 60  # for another process that writes
_CACHE_KIB = 256  # of the file in memory: a batch writes row after row and looks back at little

# What makes a ledger of version n one of version n + 1. Never edit one that was released: add another.
_MIGRATIONS = (
    """
    CREATE TABLE runs (
        run TEXT PRIMARY KEY, op TEXT NOT NULL, branch TEXT NOT NULL, baseline TEXT NOT NULL, started TEXT NOT NULL,
        agent TEXT NOT NULL, best INTEGER, error TEXT NOT NULL, seconds REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE environments (
        run TEXT PRIMARY KEY, device TEXT NOT NULL, interpreted INTEGER NOT NULL, versions TEXT NOT NULL,
        unconfined TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE model_calls (
        run TEXT, attempt INTEGER, stage TEXT NOT NULL, round INTEGER NOT NULL, answered INTEGER NOT NULL, model TEXT,
        input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, requests INTEGER, latency_s REAL,
        cost_usd REAL, PRIMARY KEY (run, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE attempts (
        run TEXT, attempt INTEGER, stage TEXT NOT NULL, round INTEGER NOT NULL, agent TEXT NOT NULL,
        model TEXT NOT NULL, prompt_sha256 TEXT NOT NULL, git_commit TEXT, PRIMARY KEY (run, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE verdicts (
        run TEXT, attempt INTEGER, status TEXT NOT NULL, message TEXT NOT NULL, cases INTEGER NOT NULL,
        passed_cases INTEGER NOT NULL, device TEXT NOT NULL, seed INTEGER, seconds REAL, PRIMARY KEY (run, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE measurements (
        run TEXT, measurement INTEGER, attempt INTEGER NOT NULL, status TEXT NOT NULL, message TEXT NOT NULL,
        shapes INTEGER NOT NULL, gpu TEXT, seconds REAL NOT NULL, PRIMARY KEY (run, measurement)
    ) WITHOUT ROWID;
    CREATE TABLE decisions (
        run TEXT PRIMARY KEY, decision TEXT NOT NULL, reason TEXT NOT NULL, baseline TEXT, speedup_low REAL,
        speedup_high REAL, roofline_share REAL, noise REAL, merge_commit TEXT
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_op ON runs (op, started);
    """,
    "ALTER TABLE runs ADD COLUMN gpu_s REAL",
)
VERSION = len(_MIGRATIONS)
TABLES = ("runs", "environments", "model_calls", "attempts", "verdicts", "measurements", "decisions")

Row = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Newest:
    """The newest run of an op."""

    started: datetime
    decision: str  # '' where it ended without one


class Ledger:
    """An open ledger. Every write is whole or not at all, and visible to other processes at once."""

    def __init__(self, workspaces: Path) -> None:
        """Opens it, makes it if there is none, and brings an older one up to date.

        Raises UsageError for one of a newer version, or a file that is none.
        """
        self.path = workspaces / NAME
        with _sqlite_errors(self.path):
            workspaces.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None)
            self._base.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            try:
                self._prepare()
            except BaseException:
                self._base.close()
                raise

    def close(self) -> None:
        """What was written stays."""
        with _sqlite_errors(self.path):
            self._base.close()

    def put(self, table: str, row: Row) -> None:
        """The row in place of the one with its key."""
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with _sqlite_errors(self.path):
            self._base.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))

    def rows(self, table: str, runs: str | Collection[str] | None = None) -> list[Row]:
        """All rows, or those of a run or of several, in the order of their keys."""
        assert table in TABLES
        where = "" if runs is None else "WHERE run IN (SELECT value FROM json_each(?))"
        names = [runs] if isinstance(runs, str) else list(runs or ())
        values = () if runs is None else (json.dumps(names),)
        with _sqlite_errors(self.path):
            found = self._base.execute(f"SELECT * FROM {table} {where} ORDER BY 1, 2", values)
            columns = [column[0] for column in found.description]
            return [dict(zip(columns, values, strict=True)) for values in found]

    def newest(self) -> dict[str, Newest]:
        """The newest run of each op; of two that began at once, the one whose id is the later."""
        query = """
            SELECT op, started, iif(error = '', coalesce(decision, ''), '')
            FROM runs LEFT JOIN decisions USING (run) ORDER BY op, started, run
        """
        with _sqlite_errors(self.path):
            last = {op: about for op, *about in self._base.execute(query)}
        return {op: Newest(datetime.fromisoformat(started), decision) for op, (started, decision) in last.items()}

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Several writes as one."""
        with _sqlite_errors(self.path):
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    def forget(self, run: str | None = None, tables: tuple[str, ...] = TABLES) -> None:
        """No rows of that run any more, or none at all."""
        with _sqlite_errors(self.path):
            for table in tables:
                where, values = ("WHERE run = ?", (run,)) if run is not None else ("", ())
                self._base.execute(f"DELETE FROM {table} {where}", values)

    def _prepare(self) -> None:
        version = self._version()
        if version > VERSION:
            raise UsageError(
                f"{self.path} has version {version} and this program knows up to {VERSION}: use the program that "
                "wrote it, or move the file away and make it again with `python -m orchestrator ledger rebuild`"
            )
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last rows; git has them
        if version < VERSION:
            self._base.execute("BEGIN IMMEDIATE")
            for number in range(self._version(), VERSION):  # another process may have been first
                for statement in filter(str.strip, _MIGRATIONS[number].split(";")):
                    self._base.execute(statement)
            self._base.execute(f"PRAGMA user_version = {VERSION}")
            self._base.execute("COMMIT")

    def _version(self) -> int:
        return int(self._base.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def entered(workspaces: Path, watch: Watch) -> Iterator[Watch]:
    """The watcher, and beside it the one that enters the run into the ledger."""
    index = Ledger(workspaces)
    try:
        yield Several(Entering(index), watch)
    finally:
        index.close()


class Entering(Silent):
    """The watcher that enters one run, step by step."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._run = ""
        self._asked: tuple[str, int] = ("", 0)  # stage and round
        self._merge_commit = ""

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """The run, and where it is judged."""
        self._run = run.id
        self._ledger.put("runs", run_row(run))
        self._ledger.put("environments", environment_row(run.id, judging))

    def asking(self, number: int, stage: str, round_: int) -> None:
        """Before the call that spends."""
        self._asked = (stage, round_)
        self._ledger.put("model_calls", call_row(self._run, number, *self._asked, None))

    def answered(self, number: int, reply: Reply) -> None:
        """What the call has cost."""
        self._ledger.put("model_calls", call_row(self._run, number, *self._asked, kept.call_of(reply)))

    def judged(self, attempt: Attempt) -> None:
        """An attempt and its verdict; one that is judged anew, its new verdict."""
        self._ledger.put("attempts", attempt_row(self._run, attempt))
        self._ledger.put("verdicts", verdict_row(self._run, attempt))

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """A measurement, whatever it came to."""
        self._ledger.put("measurements", measurement_row(self._run, number, attempt, measured))

    def recorded(self, run: Run) -> None:
        """The run as it is on disk."""
        self._ledger.put("runs", run_row(run))
        if run.verdict is None:  # begun, or taken up again
            self._ledger.forget(run.id, ("decisions",))
        else:
            self._ledger.put("decisions", decision_row(run, self._merge_commit))

    def merged(self, run: Run, commit: str) -> None:
        """The decision, with the commit that it led to."""
        self._merge_commit = commit
        self._ledger.put("decisions", decision_row(run, commit))


@dataclass(frozen=True)
class Rebuilt:
    """What a ledger was made from, and what could not be read."""

    runs: int
    unreadable: tuple[str, ...]


def rebuild(workspaces: Path) -> Rebuilt:
    """Make the ledger again from git and the run folders. The old one stays until the new one is whole."""
    folders = sorted(path.parent for path in (workspaces / "runs").glob(f"*/{RUN}"))
    if not workspaces.is_dir():
        raise UsageError(f"there is no folder {workspaces}; --workspaces DIR names another place")
    ledger, unreadable = _opened_or_new(workspaces), []
    try:
        with ledger.whole():
            ledger.forget()
            for folder in folders:
                try:
                    rows = list(rows_of(folder))
                except (ValueError, WorkspaceError) as error:  # not a record, or one whose history is gone
                    unreadable.append(f"{folder.name}: {' '.join(str(error).split())[:200]}")
                    continue
                for table, row in rows:
                    ledger.put(table, row)
    finally:
        ledger.close()
    return Rebuilt(len(folders) - len(unreadable), tuple(unreadable))


def refresh(ledger: Ledger, folder: Path) -> None:
    """Enter one run anew, from its folder and git."""
    rows = list(rows_of(folder))
    with ledger.whole():
        ledger.forget(folder.name)
        for table, row in rows:
            ledger.put(table, row)


def rows_of(folder: Path) -> Iterator[tuple[str, Row]]:
    """Everything that the ledger holds of one run, as the run's folder and git have it."""
    run = from_json(Run, (folder / RUN).read_bytes())
    yield "runs", run_row(run)
    if (folder / ENVIRONMENT).is_file():
        yield "environments", environment_row(run.id, from_json(Judging, (folder / ENVIRONMENT).read_bytes()))
    for attempt_folder in sorted((folder / "attempts").glob("*")):
        number, stage, round_ = attempt_folder.name.split("-")
        call = kept.call(attempt_folder) if kept.is_paid(attempt_folder) else None
        yield "model_calls", call_row(run.id, int(number), stage, int(round_), call)
    for attempt in run.attempts:
        yield "attempts", attempt_row(run.id, attempt)
        yield "verdicts", verdict_row(run.id, attempt)
    for timed in past.Past(run, folder).measurements():
        yield "measurements", measurement_row(run.id, timed.number, timed.attempt, timed.measured)
    if run.verdict is not None:
        branch = Workspace.open(folder.parent.parent, run.op).open_run(run.id)
        yield "decisions", decision_row(run, branch.merge_commit())


def run_row(run: Run) -> Row:
    """A row of `runs`."""
    names = ("op", "branch", "baseline", "started", "agent", "best", "error", "seconds")
    return {"run": run.id} | {name: getattr(run, name) for name in names} | {"gpu_s": run.cost.gpu_s}


def environment_row(run: str, judging: Judging) -> Row:
    """A row of `environments`."""
    return {
        "run": run,
        "device": judging.device,
        "interpreted": int(judging.interpreted),
        "versions": json.dumps(judging.versions, sort_keys=True),
        "unconfined": ", ".join(piece.name for piece in judging.sandbox if not piece.held),
    }


def call_row(run: str, attempt: int, stage: str, round_: int, call: kept.Call | None) -> Row:
    """A row of `model_calls`: of one that was answered with what it cost."""
    row: Row = {"run": run, "attempt": attempt, "stage": stage, "round": round_, "answered": int(call is not None)}
    counted = ("model", "input_tokens", "output_tokens", "cached_tokens", "requests", "latency_s", "cost_usd")
    return row | ({} if call is None else {name: getattr(call, name) for name in counted})


def attempt_row(run: str, attempt: Attempt) -> Row:
    """A row of `attempts`."""
    names = ("stage", "round", "agent", "model", "prompt_sha256")
    row: Row = {"run": run, "attempt": attempt.number, "git_commit": attempt.commit}
    return row | {name: getattr(attempt, name) for name in names}


def verdict_row(run: str, attempt: Attempt) -> Row:
    """A row of `verdicts`."""
    report = attempt.report
    return {
        "run": run,
        "attempt": attempt.number,
        "status": str(report.status),
        "message": report.message,
        "cases": report.expected_cases,
        "passed_cases": report.passed_cases,
        "device": report.device,
        "seed": report.seed,
        "seconds": report.seconds.get("total"),
    }


def measurement_row(run: str, number: int, attempt: int, measured: Measured) -> Row:
    """A row of `measurements`."""
    return {
        "run": run,
        "measurement": number,
        "attempt": attempt,
        "status": str(measured.status),
        "message": measured.message,
        "shapes": len(measured.shapes),
        "gpu": measured.before.name if measured.before else None,
        "seconds": measured.seconds,
    }


def decision_row(run: Run, merge_commit: str) -> Row:
    """A row of `decisions`, with the figures that were decided by."""
    assert run.verdict is not None
    names = ("baseline", "speedup_low", "speedup_high", "roofline_share", "noise")
    row: Row = {"run": run.id, "decision": str(run.verdict.decision), "reason": run.verdict.reason}
    figures: Row = {name: getattr(run.measurement, name, None) for name in names}
    return row | figures | {"merge_commit": merge_commit}


def _opened_or_new(workspaces: Path) -> Ledger:
    """The ledger; one that is damaged is thrown away, since it is about to be made again."""
    try:
        return Ledger(workspaces)
    except _Damaged:
        for suffix in ("", "-wal", "-shm"):
            (workspaces / f"{NAME}{suffix}").unlink(missing_ok=True)
        return Ledger(workspaces)


class _Damaged(WorkspaceError):
    """The file is no database, or no longer one."""


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """The boundary at which what SQLite or the disk refuses becomes an error of ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise WorkspaceError(f"the ledger {path} cannot be written: {error}; see the disk and its rights") from error
    except sqlite3.DatabaseError as error:
        advice = "make it again with `python -m orchestrator ledger rebuild`"
        raise _Damaged(f"the ledger {path} is damaged ({error}); {advice}") from error
    except OSError as error:
        raise WorkspaceError(f"the ledger {path} cannot be made: {error}") from error
