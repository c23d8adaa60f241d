"""What a batch is to do: which ops, each with its own settings, under which run ids.

Owns the forms in which a person names ops, and batches/<id>/batch.json, which is written whole before anything begins
and never changes: with it a batch that was killed is taken up. Runs nothing.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator import locks, yamlfile
from orchestrator.errors import UsageError
from orchestrator.recorder import new_id
from orchestrator.records import Record, from_json, to_json
from orchestrator.text import printable
from orchestrator.tree import os_errors, write_whole

FOLDER, FILE, LOG = "batches", "batch.json", "log.jsonl"


@dataclass(frozen=True)
class Wanted(Record):
    """An op, and the settings that are its own: sections with their keys, as in a settings file."""

    op: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned(Record):
    """An op of a batch, and the run that is to be made of it."""

    wanted: Wanted
    run: str

    @property
    def op(self) -> str:
        """The op's name."""
        return self.wanted.op


@dataclass(frozen=True)
class Plan(Record):
    """A batch."""

    id: str
    started: str  # ISO 8601, UTC
    ops: tuple[Planned, ...]

    def folder(self, workspaces: Path) -> Path:
        """Where the batch keeps its plan and its log."""
        return workspaces / FOLDER / self.id


Known = Callable[[], Sequence[str]]  # the ops there are, once those that are to be taken have been
Take = Callable[[str], Sequence[str]]  # the ops that an entry names: one, or those of a folder of problems


def itself(entry: str) -> list[str]:
    """What an entry names where no problem files are taken."""
    return [entry]


def named(text: str, known: Known, take: Take = itself, where: str = "--ops") -> tuple[Wanted, ...]:
    """Ops by commas, or all of them. Raises UsageError for names that no op has, and for one that comes twice."""
    if text.strip() == "all":
        return _checked([Wanted(name) for name in known()], known(), where)
    names = [name for entry in text.split(",") if entry.strip() for name in take(entry.strip())]
    return _checked([Wanted(name) for name in names], known(), where)


def read(file: Path, known: Known, take: Take = itself) -> tuple[Wanted, ...]:
    """Ops from a YAML list of names, or of mappings with `op` and sections of settings. Raises UsageError."""
    content = yamlfile.read(file, f"--ops-file {file}")
    if not isinstance(content, list):
        raise UsageError(f"--ops-file {file} holds no list, such as '- rmsnorm' or '- {{op: rmsnorm, loop: ...}}'")
    entries = [_entry(one, f"--ops-file {file}, entry {number}") for number, one in enumerate(content, 1)]
    wanted = [replace(entry, op=name) for entry in entries for name in take(entry.op)]
    return _checked(wanted, known(), f"--ops-file {file}")


def new(wanted: Sequence[Wanted]) -> Plan:
    """A plan that begins now. Its run ids are fixed from here on, so that no kill can leave a run without a name."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Plan(new_id("batch"), now, tuple(Planned(one, new_id(one.op)) for one in wanted))


def keep(plan: Plan, workspaces: Path) -> None:
    """Write the plan down, before anything of it is done; one that is written down never changes."""
    folder = plan.folder(workspaces)
    with os_errors(f"make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / FILE).exists():
        write_whole(folder / FILE, to_json(plan))


def newest(workspaces: Path) -> Plan:
    """The batch that was begun last. Raises UsageError where there is none."""
    files = sorted((workspaces / FOLDER).glob(f"*/{FILE}"))
    if not files:
        raise UsageError(f"--resume: there is no batch in {workspaces}; begin one with --ops, or give --workspaces DIR")
    try:
        return from_json(Plan, files[-1].read_bytes())
    except ValidationError as error:
        raise UsageError(f"{files[-1]} is no plan of a batch that this program can read; begin a new batch") from error


def held(plan: Plan, workspaces: Path) -> AbstractContextManager[None]:
    """Hold the batch: two processes that work on the same one would ask for the same replies. Ends with the process."""
    refusal = f"{plan.id} is being worked on by another process; wait for it or end it"
    return locks.held(plan.folder(workspaces) / "lock", refusal)


def _entry(one: object, where: str) -> Wanted:
    if isinstance(one, str):
        return Wanted(one)
    if not isinstance(one, dict) or not isinstance(one.get("op"), str):
        raise UsageError(f"{where}: {printable(repr(one))} is neither an op's name nor a mapping with 'op: NAME'")
    return Wanted(one["op"], {str(key): value for key, value in one.items() if key != "op"})


def _checked(wanted: list[Wanted], known: Sequence[str], where: str) -> tuple[Wanted, ...]:
    if not wanted:
        raise UsageError(f"{where} names no op; known are {', '.join(known)}")
    unknown = [one.op for one in wanted if one.op not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        raise UsageError(f"{where}: no op is called {', '.join(printable(repr(name)) for name in unknown)}; {hint}")
    if twice := [name for name, count in Counter(one.op for one in wanted).items() if count > 1]:
        raise UsageError(f"{where} names {', '.join(twice)} more than once; one run an op in a batch")
    return tuple(wanted)
