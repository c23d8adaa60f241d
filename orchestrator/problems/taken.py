"""`kernelbench:PATH` in the place of an op's name: the problem of a file, or those of a folder, as ops of one's own.

Owns what such an op is called and when its folder is made: once, from a file that is remembered by its hash. From then
on it is an op like any other, under its own name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from orchestrator import catalogue, ops
from orchestrator.errors import UsageError
from orchestrator.problems import examine, folder
from orchestrator.text import printable

PREFIX = "kernelbench:"


def names(text: str, own: Path | None, say: Callable[[str], None]) -> list[str]:
    """The ops that an entry of a list names: itself, or what its problem files become.

    Raises UsageError where one file cannot be an op; of a folder such files are named and left out.
    """
    if not text.startswith(PREFIX):
        return [text]
    if not text.removeprefix(PREFIX).strip():
        raise UsageError(f"{text} names no problem: give {PREFIX}FILE, or to --ops {PREFIX}FOLDER")
    path = Path(text.removeprefix(PREFIX))
    if not path.is_dir():
        return [_taken(path, own, say)]
    found = []
    for file in sorted(path.glob("*.py"), key=_number):
        try:
            found.append(_taken(file, own, say))
        except UsageError as error:
            say(f"left out: {error}")
    if not found:
        raise UsageError(f"{path} holds no problem file that can be an op")
    return found


def name_of(path: Path) -> str:
    """level1/26_GELU_.py is level1_26_gelu."""
    level = path.absolute().parent.name if re.fullmatch(r"level\d+", path.absolute().parent.name) else "problem"
    words = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")
    return f"{level}_{words}"


def _taken(path: Path, own: Path | None, say: Callable[[str], None]) -> str:
    source = examine.read(path)
    name, digest = name_of(path), hashlib.sha256(source.encode()).hexdigest()
    made = (own or catalogue.OWN) / name
    if made.is_dir():
        if digest not in (made / "op.yaml").read_text("utf-8", "replace"):
            raise UsageError(
                f"{made} is there, and was not made from {path} as it is now; remove the folder, or rename"
            )
        return name
    origin = f"{printable(path.name)}, sha256 {digest}"
    files = folder.op_files(name, examine.examine(path, source), source, origin)
    catalogue.add(catalogue.place(name, own), files)
    try:
        ops.load(name, own or catalogue.OWN)
    except UsageError:
        catalogue.remove(made)
        raise
    say(f"{path} is the op {name}: {made}")
    return name


def _number(path: Path) -> tuple[int, str]:
    digits = re.match(r"\d+", path.name)
    return int(digits[0]) if digits else 0, path.name
