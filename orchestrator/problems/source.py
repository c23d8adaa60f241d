"""A problem's text: which of its constants may be sizes, and the same text as a function of them. Nothing is run."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator

FUNCTION = "problem"  # what `as_function` defines
WANTED = ("Model", "get_inputs", "get_init_inputs")


def constants(source: str) -> dict[str, int]:
    """Whole numbers above 0 at the top level, by name; the items of a tuple or list are numbered."""
    found: dict[str, int] = {}
    for name, value in _bound(ast.parse(source)):
        for key, item in _items(name, value):
            found[key] = item
    return found


def missing(source: str) -> list[str]:
    """What a problem has to define and this one does not."""
    defined = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return [name for name in WANTED if name not in defined]


def as_function(source: str, sizes: Collection[str]) -> str:
    """The text of a function of those constants that returns Model, get_inputs and get_init_inputs."""
    tree = ast.parse(source)
    lines = source.splitlines()
    for node in tree.body:
        replacement = _replacement(node, sizes)
        if replacement is not None:
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [replacement] + [""] * (last - first - 1)
    body = "\n".join(line.rstrip() for line in lines).strip("\n")
    code = textwrap.indent(body, "    ")
    return f"def {FUNCTION}({', '.join(sizes)}):\n{code}\n    return {', '.join(WANTED)}\n"


def forward(source: str) -> str:
    """The text of Model.forward."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"]
            return textwrap.dedent(ast.get_source_segment(source, methods[0], padded=True) or "") if methods else ""
    return ""


def _bound(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _items(name: str, value: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(value, ast.Tuple | ast.List):
        for number, item in enumerate(value.elts):
            yield from _items(f"{name}_{number}", item) if isinstance(item, ast.Constant) else ()
    elif isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0:
        yield name, value.value


def _replacement(node: ast.stmt, sizes: Collection[str]) -> str | None:
    """What stands in a statement's place within the function; None where it stays."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    is_main = isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
    if is_text or is_future or is_main:
        return ""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return None
    name, value = node.targets[0].id, node.value
    if name in sizes:
        return ""
    if isinstance(value, ast.Tuple | ast.List) and any(f"{name}_{n}" in sizes for n in range(len(value.elts))):
        items = [f"{name}_{n}" if f"{name}_{n}" in sizes else ast.unparse(one) for n, one in enumerate(value.elts)]
        return f"{name} = ({', '.join(items)},)"
    return None
