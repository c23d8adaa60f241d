"""Which ops there are: those that are shipped and, beside them, a person's own.

Owns where an op of a name is looked for and how a new folder gets there: whole or not at all. What a folder holds is
`ops`'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import ops, resources
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.ops.spec import NAME
from orchestrator.text import printable
from orchestrator.tree import lay_out, os_errors, remove_tree

FILES = ("op.yaml", "reference.py")
OWN = Path("ops")  # where a person's own ops are unless another folder is named


@dataclass(frozen=True)
class Catalogue:
    """The ops of two folders. A name that is in both is an error: neither may stand in for the other unseen."""

    shipped: Path
    own: Path | None = None

    def shipped_names(self) -> list[str]:
        """Those that a person's own may not be called."""
        return ops.names(self.shipped)

    def names(self) -> list[str]:
        """All ops, sorted. Raises UsageError for a name that is in both folders."""
        shipped, own = ops.names(self.shipped), [] if self.own is None else ops.names(self.own)
        for name in own:
            self._refuse_shipped(name, shipped)
        return sorted([*shipped, *own])

    def load(self, name: str) -> Op:
        """The op of that name. Raises UsageError where there is none, or its folder is wrong."""
        if self.own is not None and name in ops.names(self.own):
            self._refuse_shipped(name, ops.names(self.shipped))
            return ops.load(name, self.own)
        if name in ops.names(self.shipped):
            return ops.load(name, self.shipped)
        if self.own is not None and re.fullmatch(NAME, name) and (self.own / name).is_dir():
            raise UsageError(
                f"{self.own / name} has no op.yaml; write one: `python -m orchestrator ops new NAME` shows how it looks"
            )
        raise ops.unknown(name, self.names(), f"{self.shipped} or {self.own}" if self.own else str(self.shipped))

    def _refuse_shipped(self, name: str, shipped: list[str]) -> None:
        if name in shipped:
            raise UsageError(f"{self.own}/{name}: an op of this name is shipped; rename it, in op.yaml too")


def opened(own: Path | None) -> Catalogue:
    """The shipped ops and those of `own`; without it those of ./ops, where there is such a folder."""
    if own is not None and not own.is_dir():
        raise UsageError(f"--ops-dir {own} is no folder; name the one that holds your op folders")
    return Catalogue(_shipped(), own or (OWN if OWN.is_dir() else None))


def place(name: str, own: Path | None) -> Path:
    """The folder that a new op of this name is to have. Raises UsageError where it may not be called so."""
    folder = (own or OWN) / name
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{printable(repr(name))} is no name for an op: small letters, digits and _, a letter first")
    if name in ops.names(_shipped()):
        raise UsageError(f"an op {name} is shipped; choose another name (`python -m orchestrator ops show {name}`)")
    if folder.exists():
        raise UsageError(f"{folder} is there already; choose another name, or edit what is there")
    return folder


def template(name: str) -> dict[str, bytes]:
    """The files of a new op, with comments, for a person to write into. Its reference raises until it is written."""
    environment = resources.environment(resources.templates() / "op")
    return {file: environment.get_template(f"{file}.j2").render(name=name).encode() for file in FILES}


def add(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write an op's folder, where `place` said."""
    partial = folder.with_name(f".{folder.name}.partial")
    remove_tree(partial)
    lay_out(files, partial)
    with os_errors(f"make {folder}"):
        partial.rename(folder)


def remove(folder: Path) -> None:
    """Take a folder away again that `add` made."""
    remove_tree(folder)


def _shipped() -> Path:
    return resources.shipped("configs") / "ops"
