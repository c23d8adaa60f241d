"""An op is a folder: op.yaml (all that is data), reference.py (all that is code), recorded/ (replies to replay).

Owns reading and checking such a folder, and rendering the four files of a workspace from it: SPEC.md, ref.py,
test_correctness.py and bench.py. What op.yaml may say is `spec`'s. Imports no torch: the rendered files do, in
processes of their own.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator import resources, yamlfile
from orchestrator.errors import UsageError
from orchestrator.ops.parts import Strict
from orchestrator.ops.spec import OpSpec
from orchestrator.text import printable


class Op:
    """An op folder, read and checked."""

    def __init__(self, folder: Path, spec: OpSpec, reference: str) -> None:
        self.folder = folder
        self.spec = spec
        self.reference = reference

    @property
    def name(self) -> str:
        """The op's name, which is also its folder's."""
        return self.spec.name

    @property
    def like(self) -> dict[str, str]:
        """Kernels of the project that the op is for, by file name: how its house writes them. Mostly none."""
        return {path.name: path.read_text(encoding="utf-8") for path in sorted((self.folder / "like").glob("*.py"))}

    @property
    def recorded(self) -> Path:
        """The folder of recorded replies; it need not exist."""
        return self.folder / "recorded"

    @property
    def decoys(self) -> Path:
        """The op's own decoys; it need not exist."""
        return self.folder / "decoys.py"

    @property
    def _makes_inputs(self) -> bool:
        """Whether reference.py has a last word on the inputs."""
        return any(isinstance(node, ast.FunctionDef) and node.name == "make_inputs" for node in _body(self.reference))

    def workspace_files(self) -> dict[str, bytes]:
        """The baseline of a workspace: four files that stand alone, by name."""
        environment = resources.environment(resources.templates())
        rendered = {
            name: environment.get_template(f"{name}.j2").render(op=self.spec, makes_inputs=self._makes_inputs)
            for name in ("SPEC.md", "test_correctness.py", "bench.py")
        }
        return {name: text.encode() for name, text in {**rendered, "ref.py": self.reference}.items()}


def names(root: Path) -> list[str]:
    """All ops below `root`, sorted."""
    return sorted(path.parent.name for path in root.glob("[!.]*/op.yaml"))


def unknown(name: str, known: Sequence[str], where: str) -> UsageError:
    """What to say of a name that no op has."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return UsageError(f"no op {printable(repr(name))} in {where}: {hint}known ops are {', '.join(known) or 'none'}")


def load(name: str, root: Path) -> Op:
    """The op `name` below `root`. Raises UsageError when it is not there or its folder is wrong."""
    folder = root / name
    if not (folder / "op.yaml").is_file() or "/" in name:
        raise unknown(name, names(root), str(root))
    spec = _read_spec(folder / "op.yaml")
    if spec.name != name:
        raise UsageError(f"{folder / 'op.yaml'}: name is {spec.name!r}, but the folder is {name!r}; they must agree")
    return Op(folder, spec, _read_reference(folder / "reference.py", spec.reference))


def _read_spec(path: Path) -> OpSpec:
    content = yamlfile.read(path, str(path))
    if not isinstance(content, dict):
        what = "is empty" if content is None else "holds no mapping"
        raise UsageError(f"{path} {what}: its keys, such as name and title, are those of any op that is shipped")
    try:
        return OpSpec.model_validate(content)
    except ValidationError as error:
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")  # why another may be missing
        raise UsageError(f"{path}: {_problem(first)}{more}") from error


def _problem(found: Any) -> str:
    """What is wrong, and at which key; for a key that there is not, the nearest that there is."""
    where = yamlfile.place(found["loc"])
    if found["type"] == "extra_forbidden":
        given = str(found["loc"][-1])  # which may be a key, elsewhere
        known = sorted({name for model in Strict.__subclasses__() for name in model.model_fields} - {given})
        close = difflib.get_close_matches(given, known, n=1)
        return f"{where} is no key of an op" + (f"; did you mean {close[0]}?" if close else "")
    said = str(found["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


def _body(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def _read_reference(path: Path, function: str) -> str:
    try:
        source = path.read_text(encoding="utf-8")
        body = _body(source)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == function for node in body):
        raise UsageError(f"{path} defines no function {function}; the op's reference must have that name")
    return source
