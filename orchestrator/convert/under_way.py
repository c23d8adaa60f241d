"""A conversion under way: its ops and the ids of its runs, so that one that was killed goes on where it was.

Owns conversions/<id>/conversion.json. An id is in it, written whole, once the op's folder is there and before the run
begins: a step whose id is there is taken up, any other is done anew, and none of those was paid for. Runs nothing;
what a run has done is its own record's to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import kept, locks
from orchestrator.convert import extract
from orchestrator.convert.extract import Target
from orchestrator.errors import UsageError
from orchestrator.recorder import new_id
from orchestrator.records import Record, from_json, to_json
from orchestrator.tree import os_errors, write_whole

FOLDER, FILE = "conversions", "conversion.json"


@dataclass(frozen=True)
class Begun(Record):
    """What was begun: of which code, as which ops, and the runs by their step."""

    id: str
    code: str  # sha256 of what was cut out
    ops: tuple[str, ...]
    runs: dict[str, str]


class Conversion:
    """One conversion, and where its record is."""

    def __init__(self, folder: Path, begun: Begun) -> None:
        self._folder = folder
        self._begun = begun

    @classmethod
    def begin(cls, target: Target, ops: Sequence[str], workspaces: Path) -> Conversion:
        """Of code whose ops are written; each has its run's id from now on."""
        runs = {name: new_id(name) for name in ops}
        begun = Begun(new_id(ops[0]), _digest(target), tuple(ops), runs)
        made = cls(workspaces / FOLDER / begun.id, begun)
        with os_errors(f"make {made._folder}"):
            made._folder.mkdir(parents=True)
        made._keep()
        return made

    @classmethod
    def newest(cls, target: Target, op: str, workspaces: Path) -> Conversion:
        """The one of that op that was begun last. Raises UsageError where there is none, or the code has changed."""
        place = workspaces / FOLDER
        files = [one / FILE for one in kept.runs_of(op, place)] if place.is_dir() else []
        files = [file for file in files if file.is_file()]
        if not files:
            raise UsageError(
                f"--resume: no conversion to {op} came as far as its op in {workspaces}: leave --resume out, with "
                f"--replace where the op's folder is there"
            )
        begun = from_json(Begun, files[-1].read_bytes())
        if begun.code != _digest(target):
            raise UsageError(f"--resume: {target.path.name} has changed since {begun.id} began: give --replace instead")
        return cls(files[-1].parent, begun)

    @property
    def id(self) -> str:
        """Its name."""
        return self._begun.id

    @property
    def ops(self) -> tuple[str, ...]:
        """The op of the code, and the one of its gradients if there is one."""
        return self._begun.ops

    def has(self, step: str) -> bool:
        """Whether that step's run has an id, and so its op a folder."""
        return step in self._begun.runs

    def run_of(self, step: str, op: str) -> str:
        """The id of the op's run in that step: the one that it has, else a new one, which it has from now on."""
        if not self.has(step):
            self._begun = replace(self._begun, runs={**self._begun.runs, step: new_id(op)})
            self._keep()
        return self._begun.runs[step]

    def held(self) -> AbstractContextManager[None]:
        """Hold it: two processes that work on the same one would ask for the same replies."""
        refusal = f"{self.id} is being worked on by another process; wait for it or end it"
        return locks.held(self._folder / "lock", refusal)

    def _keep(self) -> None:
        write_whole(self._folder / FILE, to_json(self._begun))


def _digest(target: Target) -> str:
    return hashlib.sha256(extract.cut(target).text.encode()).hexdigest()
