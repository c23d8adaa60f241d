"""The names of the installed Triton's language, read from its files as text.

Owns finding the package without importing it (an audit needs no torch, no GPU and no compiler) and what its modules
define. What a release deprecates is what its own source warns of.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_WARNING = re.compile(r"\b(?:tl\.)?(\w+) is deprecated")


@dataclass(frozen=True)
class Language:
    """What `triton.language` of one release has."""

    version: str
    names: frozenset[str]
    math: frozenset[str]
    deprecated: dict[str, str]  # name: what the release says of it

    @property
    def release(self) -> tuple[int, ...]:
        """The version's numbers, to compare."""
        return tuple(int(number) for number in re.findall(r"\d+", self.version)[:3])


@cache
def installed() -> Language | None:
    """The installed Triton's, or None where there is none."""
    spec = importlib.util.find_spec("triton")
    folder = Path(spec.origin).parent / "language" if spec is not None and spec.origin else None
    if folder is None or not (folder / "__init__.py").is_file():
        return None
    core = (folder / "core.py").read_text(encoding="utf-8")
    submodules = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    return Language(
        version=importlib.metadata.version("triton"),
        names=frozenset(_defined(folder / "__init__.py") | submodules),
        math=frozenset(_defined(folder / "math.py")),
        deprecated=_deprecated(core),
    )


def _defined(path: Path) -> set[str]:
    """Names that a module binds at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def _deprecated(core: str) -> dict[str, str]:
    """Functions whose first statements warn that they are deprecated, and the warning."""
    found = {}
    for node in ast.parse(core).body:
        if isinstance(node, ast.FunctionDef):
            for statement in node.body[:3]:
                call = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("warn") and call.args:
                    text = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
                    match = _WARNING.search(str(text))
                    if match is not None and match[1] == node.name:
                        found[node.name] = str(text)
    return found
