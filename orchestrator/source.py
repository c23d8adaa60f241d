"""A kernel file as facts: what it imports, defines, decorates and launches.

Owns the reading of a candidate's bytes: the checks a parser cannot make (coding cookie, invisible characters, folded
identifiers, size, depth), the syntax tree, and the facts that policy and audit share. Owns no judgement about what a
file may say, and never imports or runs it.
"""

from __future__ import annotations

import ast
import functools
import io
import operator
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.records import Finding, Status

MAX_BYTES = 1_000_000
MAX_DEPTH = 120  # levels of the tree; honest files stay below 40, and every reader of the tree recurses
MAX_NODES = 60_000  # of the tree; the longest file of the public kernel libraries has half of that
TEXT_LIMIT = 160

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_ADDS_ATOMICALLY = {"atomic_add", "atomic_cas", "atomic_xchg"}  # the others give the same in any order
_MOST_WHOLE = 1 << 31
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
}
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")
_UTF8 = {"utf-8", "utf8", "utf-8-sig"}


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds. `module` is what gets imported, `path` what `bound` stands for."""

    bound: str
    path: str
    module: str
    node: ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Function:
    """A def, wherever it stands. `owner` is the class it is a method of."""

    name: str
    node: FunctionNode
    owner: str | None
    decorators: tuple[str, ...]  # dotted, arguments dropped; "" where it is not a dotted name
    kernel: bool

    @property
    def top_level(self) -> bool:
        """Whether its def starts in the first column."""
        return self.node.col_offset == 0


@dataclass(frozen=True)
class Class:
    """A class statement, with its bases and decorators as dotted names."""

    name: str
    node: ast.ClassDef
    bases: tuple[str, ...]
    decorators: tuple[str, ...]


@dataclass(frozen=True)
class Launch:
    """`kernel[grid](...)`, where the kernel is named directly. Launches through other names need inference."""

    kernel: str
    grid: ast.expr
    call: ast.Call


@dataclass(frozen=True)
class Source:
    """A file that parses, and its facts."""

    filename: str
    text: str
    tree: ast.Module = field(repr=False)
    imports: tuple[Import, ...]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    launches: tuple[Launch, ...]
    lines: tuple[str, ...] = field(repr=False)
    paths: Mapping[str, str] = field(repr=False)  # bound name -> dotted path, over all imports

    @property
    def kernels(self) -> tuple[Function, ...]:
        """The functions that Triton compiles."""
        return tuple(function for function in self.functions if function.kernel)

    @property
    def host_functions(self) -> tuple[Function, ...]:
        """The functions that run in Python."""
        return tuple(function for function in self.functions if not function.kernel)

    def function(self, name: str) -> Function | None:
        """The top-level def of that name."""
        found = (f for f in self.functions if f.name == name and f.top_level and f.owner is None)
        return next(found, None)

    def dotted(self, node: ast.expr) -> str:
        """`tl.float32` as "triton.language.float32", through the file's imports; "" for anything else."""
        return _dotted(node, self.paths)

    def line(self, node: ast.AST) -> int:
        """The line a node starts on; 1 where the tree has none."""
        return int(getattr(node, "lineno", 1))

    def finding(self, status: Status, node: ast.AST, message: str, advice: str) -> Finding:
        """A finding at a node, quoting its line."""
        line = self.line(node)
        return _finding(self.filename, self.lines, status, line, message, advice)


@functools.lru_cache(maxsize=4)  # policy and signature ask for the same file
def read(data: bytes, filename: str) -> Source | Finding:
    """The facts of a file, or the one reason why it has none. Raises nothing for bad input."""
    problem = _bytes_problem(data, filename)
    if problem is not None:
        return problem
    tree = _parse(data, filename)
    if isinstance(tree, Finding):
        return tree
    text = data.decode("utf-8")
    lines = tuple(_lines(text))
    return _identifier_problem(data, filename, lines) or _facts(filename, text, lines, tree)


def adds_atomically(source: Source) -> bool:
    """Whether a kernel of the file adds by an atomic operation, or under a lock, in an order that nothing fixes."""
    used = (node for kernel in source.kernels for node in ast.walk(kernel.node))
    return any(
        isinstance(node, ast.Name | ast.Attribute) and source.dotted(node).rpartition(".")[2] in _ADDS_ATOMICALLY
        for node in used
    )


def integers(source: Source) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The whole numbers in the file's code: those that something is compared with, and the others.

    All of them: which are tried is drawn, so that no row of others put before one keeps it out.
    """
    sides = [side for node in ast.walk(source.tree) if isinstance(node, ast.Compare) for side in _sides(node)]
    compared = dict.fromkeys(number for side in sides if (number := _whole(side)) is not None)
    every = dict.fromkeys(number for node in ast.walk(source.tree) if (number := _whole(node)) is not None)
    return tuple(compared), tuple(number for number in every if number not in compared)


def _sides(node: ast.Compare) -> Iterator[ast.expr]:
    for side in (node.left, *node.comparators):
        yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else (side,)


def _whole(node: ast.AST) -> int | None:
    """Its value where it is a whole number, or arithmetic on such: `1 << 12`, `5 * 1024`."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value if abs(value) < _MOST_WHOLE else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = _whole(left), _whole(right)
            if one is None or other is None or (isinstance(op, ast.LShift) and not 0 <= other < 32):
                return None
            value = _ARITHMETIC[type(op)](one, other)
            return value if abs(value) < _MOST_WHOLE else None
    return None


def is_demo(node: ast.AST) -> bool:
    """Exactly `if __name__ == "__main__":`, without an else: an imported file never runs it."""
    match node:
        case ast.If(
            test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant("__main__")]),
            orelse=[],
        ):
            return True
    return False


def _lines(text: str) -> list[str]:
    """Lines as Python counts them: form feeds and Unicode separators do not end one."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _finding(filename: str, lines: tuple[str, ...], status: Status, line: int, message: str, advice: str) -> Finding:
    text = lines[line - 1].strip()[:TEXT_LIMIT] if 0 < line <= len(lines) else ""
    return Finding(status, f"{filename}:{line}", text, message, advice)


# --- bytes


def _bytes_problem(data: bytes, filename: str) -> Finding | None:
    def found(status: Status, message: str, advice: str, line: int = 1) -> Finding:
        return Finding(status, f"{filename}:{line}", "", message, advice)

    if len(data) > MAX_BYTES:
        return found(Status.FORBIDDEN, f"the file is larger than {MAX_BYTES} bytes", "write the kernel file alone")
    if not data.strip():
        return found(Status.COMPILE_ERROR, "the file is empty", "write the whole kernel file")
    cookie = _cookie(data)
    if cookie is not None and cookie not in _UTF8:
        return found(Status.FORBIDDEN, f"a coding cookie asks for {cookie!r}", "remove it; the file is UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return found(Status.COMPILE_ERROR, f"not UTF-8: {error.reason}", "write the file in UTF-8", line)
    return _character_problem(text, filename)


def _cookie(data: bytes) -> str | None:
    """The encoding that the first two lines ask for, as Python reads them (PEP 263)."""
    head = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", 2)
    for line in head[:2]:
        match = _COOKIE.match(line)
        if match:
            return match[1].decode("ascii", "replace").lower().replace("_", "-")
        if not _BLANK.match(line):
            return None
    return None


def _character_problem(text: str, filename: str) -> Finding | None:
    """Characters that a reader cannot see: controls, and format characters such as bidi marks and a BOM."""
    if text.isascii() and text.isprintable():
        return None
    for number, line in enumerate(_lines(text), start=1):
        for char in line:
            if char in "\t\f" or unicodedata.category(char) not in ("Cc", "Cf"):
                continue
            message = f"the invisible character U+{ord(char):04X}"
            advice = "write plain text: no control, bidi or zero-width characters, no byte order mark"
            where, shown = f"{filename}:{number}", ascii(line.strip())[:TEXT_LIMIT]
            return Finding(Status.FORBIDDEN, where, shown, message, advice)
    return None


def _identifier_problem(data: bytes, filename: str, lines: tuple[str, ...]) -> Finding | None:
    """An identifier that Python reads as another one than is written (NFKC folding)."""
    if data.isascii():
        return None
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type in (tokenize.NAME, tokenize.ERRORTOKEN):
                folded = unicodedata.normalize("NFKC", token.string)
                if folded != token.string:
                    message = f"the identifier {token.string!r} is read as {folded!r}"
                    advice = "spell names in plain characters"
                    return _finding(filename, lines, Status.FORBIDDEN, token.start[0], message, advice)
    except (tokenize.TokenError, SyntaxError) as error:
        return _finding(filename, lines, Status.FORBIDDEN, 1, f"cannot be split into tokens: {error}", "plain Python")
    return None


# --- tree


def _parse(data: bytes, filename: str) -> ast.Module | Finding:
    advice = "send a file that Python 3.11 parses"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a docstring is not a finding
            tree = ast.parse(data, filename=filename)
    except SyntaxError as error:
        text = (error.text or "").strip()[:TEXT_LIMIT]
        return Finding(
            Status.COMPILE_ERROR, f"{filename}:{error.lineno or 1}", text, f"syntax error: {error.msg}", advice
        )
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Finding(Status.COMPILE_ERROR, f"{filename}:1", "", f"cannot be parsed: {error or 'too deep'}", advice)
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        return Finding(Status.FORBIDDEN, f"{filename}:1", "", "the file is too large", "write the kernel file alone")
    if _depth(tree) > MAX_DEPTH:
        return Finding(
            Status.COMPILE_ERROR, f"{filename}:1", "", f"nested deeper than {MAX_DEPTH} levels", "flatten it"
        )
    return tree


def _depth(tree: ast.AST) -> int:
    """Height of the tree, counted level by level, as the tree may be too deep to recurse into."""
    level, depth = [tree], 0
    while level and depth <= MAX_DEPTH:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return depth


# --- facts


def _facts(filename: str, text: str, lines: tuple[str, ...], tree: ast.Module) -> Source:
    imports = tuple(_imports(tree))
    paths = {item.bound: item.path for item in imports}
    functions = tuple(_functions(tree, paths))
    names = {function.name for function in functions if function.kernel}
    return Source(
        filename=filename,
        text=text,
        tree=tree,
        imports=imports,
        functions=functions,
        classes=tuple(_class(node, paths) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)),
        launches=tuple(_launches(tree, names)),
        lines=lines,
        paths=paths,
    )


def _imports(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                yield Import(alias.asname or root, alias.name if alias.asname else root, alias.name, node)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(alias.asname or alias.name, f"{module}.{alias.name}", module, node)


def _dotted(node: ast.expr, paths: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([paths.get(node.id, node.id), *reversed(parts)])


def _decorators(nodes: list[ast.expr], paths: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_dotted(node.func if isinstance(node, ast.Call) else node, paths) for node in nodes)


def _functions(tree: ast.Module, paths: Mapping[str, str]) -> Iterator[Function]:
    wrapped = _wrapped(tree, paths)
    for parent in ast.walk(tree):
        owner = parent.name if isinstance(parent, ast.ClassDef) else None
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, FunctionNode):
                decorators = _decorators(node.decorator_list, paths)
                kernel = "triton.jit" in decorators or (parent is tree and node.name in wrapped)
                yield Function(node.name, node, owner, decorators, kernel)


def _wrapped(tree: ast.Module, paths: Mapping[str, str]) -> set[str]:
    """Names of functions that become kernels by a call: `kernel = triton.jit(function)`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    first = (call.args[0] for call in calls if _dotted(call.func, paths) == "triton.jit")
    return {node.id for node in first if isinstance(node, ast.Name)}


def _class(node: ast.ClassDef, paths: Mapping[str, str]) -> Class:
    plain = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]  # Generic[T] is Generic
    bases = tuple(_dotted(base, paths) for base in plain)
    return Class(node.name, node, bases, _decorators(node.decorator_list, paths))


def _launches(tree: ast.Module, kernels: set[str]) -> Iterator[Launch]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            target = node.func.value
            if isinstance(target, ast.Name) and target.id in kernels:
                yield Launch(target.id, node.func.slice, node)
