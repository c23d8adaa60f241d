"""What a kernel file is, whatever it looks like: the hash of its syntax tree, normalised.

Comments, docstrings, formatting and the names of local variables do not matter; every literal does, and every name
that can be seen from outside a function: parameters, because a launch gives them by name, and what is bound at the top
level. Two files of one fingerprint do the same; two that do the same may well have two.
"""

from __future__ import annotations

import ast
import builtins
import hashlib

_LOCAL = "\N{BULLET}"  # no name can begin so


def fingerprint(kernel: bytes) -> str:
    """The hash. Raises SyntaxError or ValueError for what does not parse."""
    tree = ast.parse(kernel)
    outside = {*_bound(tree.body), *dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            _drop_docstring(node)
    for function in _outermost(tree):
        _rename_locals(function, outside)
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def _bound(body: list[ast.stmt]) -> set[str]:
    """Names that these statements bind, and those of everything within them that is no function's own."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        for node in _own(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
    return found


def _own(node: ast.AST) -> list[ast.AST]:
    """The node and what is within it, functions left out but for themselves."""
    found: list[ast.AST] = [node]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            found += _own(child)
    return found


def _outermost(tree: ast.AST) -> list[ast.AST]:
    """The functions that lie in no other."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        found += [child] if inside else _outermost(child)
    return found


def _rename_locals(function: ast.AST, outside: set[str]) -> None:
    """Number its variables in the order in which they occur, those of functions within it too.

    One name stays one name and two stay two, so nothing changes but names. A name that also means something outside, or
    that is a parameter, a function or declared global, is left.
    """
    kept = set(outside)
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            kept.add(node.arg)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            kept.update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            kept.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            kept.add(node.rest)
        elif isinstance(node, ast.alias):
            kept.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kept.add(node.name)
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)} - kept
    numbers: dict[str, str] = {}
    for node in names:
        if node.id in bound:
            node.id = numbers.setdefault(node.id, f"{_LOCAL}{len(numbers)}")


def _drop_docstring(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            node.body = rest
