"""The code that is asked for, cut from its file with what it needs: functions, classes, constants, imports.

Reads syntax trees only; nothing is run or imported. Follows names through the file and through the modules beside it
that it imports. Names that are made at run time (setattr, star imports, exec) are not followed: what is missing then
shows when the cut code is run beside the original.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import UsageError

_MAX_BYTES = 2_000_000


@dataclass(frozen=True)
class Target:
    """What is asked for: a file, and the name of a function, a class or a method in it."""

    path: Path
    name: str

    @property
    def first(self) -> str:
        """The name at the top of the file."""
        return self.name.partition(".")[0]

    @property
    def method(self) -> str:
        """The method's name, where one is asked for."""
        return self.name.partition(".")[2]

    @property
    def op(self) -> str:
        """The name of the op that comes of it."""
        words = "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(self.name))
        joined = "".join(c if c.isalnum() else "_" for c in words)
        return "_".join(_merged(joined.split("_"))) or "op"


def _merged(words: list[str]) -> list[str]:
    """Letters of an abbreviation put together again: r, m, s, norm is rms, norm."""
    out: list[str] = []
    letters = ""
    for word in [word for word in words if word]:
        if len(word) == 1:
            letters += word
        elif letters:
            out, letters = [*out, letters, word], ""
        else:
            out.append(word)
    return [*out, letters] if letters else out


@dataclass(frozen=True)
class Cut:
    """The code that was cut out: imports from elsewhere, and definitions in an order in which they can run."""

    target: Target
    is_class: bool
    imports: tuple[str, ...]
    code: str
    files: tuple[Path, ...]  # from which something was taken

    @property
    def text(self) -> str:
        """All of it, to be run."""
        return "\n".join(["from __future__ import annotations", *self.imports, self.code])


@dataclass
class _Module:
    """A file's top level, by name."""

    path: Path
    text: str
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)  # in order; a name may be bound again
    imported: dict[str, ast.stmt] = field(default_factory=dict)


def parse(text: str) -> Target:
    """The target that `path.py:Name` or `path.py:Class.method` names. Raises UsageError."""
    path, colon, name = text.rpartition(":")
    if not colon or not name or not path:
        raise UsageError(f"{text!r} names no code: give FILE.py:NAME, such as src/model.py:Attention")
    if not all(part.isidentifier() for part in name.split(".")) or name.count(".") > 1:
        raise UsageError(f"{name!r} is no name of a function, a class, or Class.method")
    return Target(Path(path).absolute(), name)


def cut(target: Target, keep: tuple[str, ...] = ()) -> Cut:
    """The target with everything of its file and of the modules beside it that it uses; `keep` names more to keep.

    Raises UsageError where it is not there or cannot be cut out.
    """
    module = _read(target.path)
    node = _found(module, target)
    cutter = _Cutter(target.path.parent)
    for name in (target.first, *(name for name in keep if name in module.defined)):
        cutter.take(module, name)
    return Cut(
        target,
        isinstance(node, ast.ClassDef),
        tuple(dict.fromkeys(cutter.imports)),
        "\n\n\n".join(cutter.pieces),
        tuple(dict.fromkeys(cutter.files)),
    )


def _read(path: Path) -> _Module:
    try:
        data = path.read_bytes()
        text = data.decode()
        tree = ast.parse(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{path} has {len(data)} bytes; at most {_MAX_BYTES} are read")
    module = _Module(path, text)
    for statement in _flat(tree.body):
        for name in _binds(statement):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                module.imported[name] = statement
            else:
                module.defined.setdefault(name, []).append(statement)
    return module


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of the top level; what stands in an `if` or a `try` there is taken whole where it binds names."""
    found: list[ast.stmt] = []
    for statement in body:
        is_main = isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)
        if not is_main:
            found.append(statement)
    return found


def _binds(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _stored(node)]
    if isinstance(statement, ast.If | ast.Try | ast.With):
        return [
            name for inner in ast.iter_child_nodes(statement) if isinstance(inner, ast.stmt) for name in _binds(inner)
        ]
    return []


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _found(module: _Module, target: Target) -> ast.stmt:
    """The definition that is meant. Raises UsageError with what there is instead."""
    definitions = {
        name: nodes[-1]
        for name, nodes in module.defined.items()
        if isinstance(nodes[-1], ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    node = definitions.get(target.first)
    if node is None:
        elsewhere = f"; {target.first} is imported there, name the file that defines it"
        hint = elsewhere if target.first in module.imported else ""
        if target.first in module.defined:
            hint = f" as a function or a class: write one with def that does what {target.first} does"
        raise UsageError(
            f"{target.path.name} defines no {target.first!r}{hint or _meant(target.first, [*definitions])}"
        )
    if isinstance(node, ast.AsyncFunctionDef):
        raise UsageError(f"{target.name} is async; convert the function that computes")
    if target.method:
        methods = [one.name for one in getattr(node, "body", []) if isinstance(one, ast.FunctionDef)]
        if not isinstance(node, ast.ClassDef) or target.method not in methods:
            raise UsageError(f"{target.first} has no method {target.method!r}{_meant(target.method, methods)}")
    return node


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(known)) or 'none'}"


class _Cutter:
    """Follows names from module to module and writes each definition down after what it needs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[Path, _Module] = {}
        self._owner: dict[str, Path] = {}  # whose each name is in the result
        self._under_way: set[tuple[Path, str]] = set()
        self._written: set[tuple[Path, int]] = set()
        self.imports: list[str] = []
        self.pieces: list[str] = []
        self.files: list[Path] = []

    def take(self, module: _Module, name: str) -> None:
        """The name's definition, and before it what it uses."""
        if name in module.defined:
            self._take_defined(module, name)
        elif name in module.imported:
            self._take_imported(module, name)

    def _take_defined(self, module: _Module, name: str) -> None:
        key = (module.path, name)
        if key in self._under_way:
            return
        self._under_way.add(key)
        owner = self._owner.setdefault(name, module.path)
        if owner != module.path:
            raise UsageError(
                f"{name} is defined in {owner.name} and in {module.path.name}, and both are needed: rename one"
            )
        for statement in module.defined[name]:
            for used in _used(statement):
                if used != name:
                    self.take(module, used)
            self._write(module, statement)

    def _write(self, module: _Module, statement: ast.stmt) -> None:
        if (module.path, statement.lineno) in self._written:
            return
        self._written.add((module.path, statement.lineno))
        self.files.append(module.path)
        self.pieces.append(_text(module.text, statement))

    def _take_imported(self, module: _Module, name: str) -> None:
        statement = module.imported[name]
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        alias = next(one for one in statement.names if (one.asname or one.name.partition(".")[0]) == name)
        if isinstance(statement, ast.ImportFrom):
            self._take_from(module, statement, alias, name)
        elif self._beside(module, alias.name, 0) is not None:
            raise UsageError(
                f"{module.path.name} uses {alias.name} as a module, which lies beside it: write "
                f"`from {alias.name} import ...` with the names that are used, so that they can be cut out"
            )
        else:
            self.imports.append(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))

    def _take_from(self, module: _Module, statement: ast.ImportFrom, alias: ast.alias, name: str) -> None:
        source = statement.module or ""
        beside = self._beside(module, source, statement.level)
        if statement.module == "__future__":
            return
        if beside is None and statement.level:
            raise UsageError(
                f"{module.path.name} imports {name} from {'.' * statement.level}{source}, which is no file there"
            )
        if beside is None:
            self.imports.append(f"from {source} import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
            return
        other = self._modules.setdefault(beside, _read(beside))
        if alias.name not in other.defined and alias.name not in other.imported:
            raise UsageError(f"{module.path.name} imports {alias.name} from {beside.name}, which does not define it")
        self.take(other, alias.name)
        if alias.asname and alias.asname != alias.name:
            self.pieces.append(f"{alias.asname} = {alias.name}")

    def _beside(self, module: _Module, name: str, level: int) -> Path | None:
        """The file of a module that is imported locally: relative to the file, or by name from the file's folder or one
        above it; None for what comes from elsewhere.
        """
        parts = name.split(".") if name else []
        folder = module.path.parent
        for _ in range(level - 1):
            folder = folder.parent
        roots = [folder] if level else [folder, *list(folder.parents)[:4]]
        for root in roots:
            for file in (
                root.joinpath(*parts).with_suffix(".py") if parts else root / "__init__.py",
                root.joinpath(*parts) / "__init__.py",
            ):
                if file.is_file() and file != module.path:
                    return file
        return None


def _used(statement: ast.stmt) -> list[str]:
    """Names that a statement reads, in order; annotations that are text are left out."""
    return list(dict.fromkeys(n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and not _stored(n)))


def _text(source: str, statement: ast.stmt) -> str:
    """The statement's lines, with its decorators and the comments right above it."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    lines = source.splitlines()
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : statement.end_lineno])
