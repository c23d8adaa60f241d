"""The corpora on disk: each file with its kind and the statuses it may end in.

A file of ours says it in its first line:

    # cheat: KIND | expect: STATUS or STATUS | runtime: STATUS | needs: gpu
    # honest: STYLE

`expect` is of the whole (policy, then judge), `runtime` of the judge alone; `runtime: nothing` says that only the
source shows it. The given files may not be edited, so given.yaml says the same of them. Owns no verdict.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from orchestrator.errors import UsageError
from orchestrator.records import Status

OP = "rmsnorm"  # what all of them are kernels of, good or bad
CORPUS = Path(__file__).resolve().parent / "corpus"

_NOTHING = "nothing"  # this layer cannot see it
_NO_VERDICT = "any"  # it depends on what an op promises: none is prescribed
_KEYS = {"kind", "expect", "runtime", "needs", "sandbox"}
_TAMPERING = re.compile(rb'os\.environ(?:\.get\("CHEAT_SANDBOX"\)|\["CHEAT_SANDBOX"\])')


@dataclass(frozen=True)
class Entry:
    """A file of the corpora. Empty sets of statuses: no verdict is prescribed, or this layer cannot see it."""

    name: str  # "cheats/numpy_1", "given/honest/k01_plain"
    path: Path
    honest: bool
    kind: str
    expected: frozenset[Status]  # of the whole
    runtime: frozenset[Status]  # of the run-time layer alone
    prescribed: bool = True
    needs_gpu: bool = False
    sandbox: str = ""  # what CHEAT_SANDBOX must say for it to act; "": the folder of the job

    def data(self) -> bytes:
        """The file as it is."""
        return self.path.read_bytes()

    @property
    def tampers(self) -> bool:
        """Whether it acts only where CHEAT_SANDBOX lets it."""
        return b"CHEAT_SANDBOX" in self.data()

    def armed(self, folder: Path) -> bytes:
        """The file, made to act: one that tampers asks CHEAT_SANDBOX where, and is given the answer in its place."""
        value = repr(self.sandbox or str(folder)).encode()
        return _TAMPERING.sub(lambda _: value, self.data())


@cache
def read() -> tuple[Entry, ...]:
    """All entries, in the order of their names."""
    described = yaml.safe_load((CORPUS / "given.yaml").read_text(encoding="utf-8"))
    entries = []
    for path in sorted(CORPUS.rglob("*.py")):
        name = path.relative_to(CORPUS).with_suffix("").as_posix()
        fields = described[path.stem] if name.startswith("given/") else _header(path)
        entries.append(_entry(name, path, fields))
    return tuple(entries)


def select(entries: Sequence[Entry], only: str | None, sample: int | None) -> tuple[Entry, ...]:
    """Those whose name or kind fits the pattern; of them every k-th, so that `sample` remain. Raises UsageError."""
    fit = [
        entry
        for entry in entries
        if only is None or any(fnmatch.fnmatch(text, only) for text in (entry.name, entry.path.stem, entry.kind))
    ]
    if not fit:
        raise UsageError(f"--only {only}: no file or kind of the corpora is called that; try '*cache*' or 'honest/*'")
    if sample is None or sample >= len(fit):
        return tuple(fit)
    if sample < 1:
        raise UsageError(f"--sample {sample}: give a number of files, 1 or more")
    return tuple(fit[number * len(fit) // sample] for number in range(sample))


def _entry(name: str, path: Path, fields: Mapping[str, str]) -> Entry:
    honest = path.parent.name == "honest"
    if unknown := set(fields) - _KEYS:
        raise ValueError(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    expect = fields.get("expect", Status.PASSED if honest else "")
    return Entry(
        name=name,
        path=path,
        honest=honest,
        kind=fields["kind"],
        expected=_statuses(expect),
        runtime=_statuses(fields.get("runtime", expect)),
        prescribed=expect != _NO_VERDICT,
        needs_gpu=fields.get("needs", "") == "gpu",
        sandbox=fields.get("sandbox", ""),
    )


def _statuses(text: str) -> frozenset[Status]:
    return frozenset() if text in (_NOTHING, _NO_VERDICT) else frozenset(Status(part) for part in text.split(" or "))


def _header(path: Path) -> dict[str, str]:
    line = path.read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    fields = dict(part.split(": ", 1) for part in line.removeprefix("# ").split(" | "))
    role = "honest" if path.parent.name == "honest" else "cheat"
    if role not in fields:
        raise ValueError(f"{path}: the first line must begin with '# {role}: '")
    return {"kind": fields.pop(role), **fields}
