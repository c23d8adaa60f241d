"""Top-level names of a file renamed wherever they are meant, so that two files can be one.

Owns Python's scopes as far as that needs them: a parameter, a local name or a class's own of the same name stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def rename(tree: ast.Module, change: Mapping[str, str]) -> None:
    """Renames in place."""
    _Renaming(change).visit(tree)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these bind in their own scope."""
    return {name for node in _own(nodes) for name in _binds(node)} - _declared_global(nodes)


def _declared_global(nodes: Iterable[ast.AST]) -> set[str]:
    return {name for node in _own(nodes) if isinstance(node, ast.Global) for name in node.names}


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All below that is of the same scope: not what lies in functions, classes and comprehensions."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _Comprehension):
            pending += [one.target for one in ast.walk(node) if isinstance(one, ast.NamedExpr)]
        elif not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.split(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


class _Renaming(ast.NodeVisitor):
    """`_read` and `_bound`: names that are not the file's, where they are read and where they are bound."""

    def __init__(self, change: Mapping[str, str]) -> None:
        self._change = change
        self._read: set[str] = set()
        self._bound: set[str] = set()
        self._around: set[str] = set()  # of the functions around: what a class has is not seen in its methods

    def visit_Name(self, node: ast.Name) -> None:
        node.id = self._now(node.id, self._read if isinstance(node.ctx, ast.Load) else self._bound)

    def visit_Global(self, node: ast.Global) -> None:
        node.names = [self._change.get(name, name) for name in node.names]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        node.name = node.name and self._now(node.name, self._bound)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        with self._within([node.args, node.body]):
            self.visit(node.body)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node, node.elt)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node, node.elt)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node, node.elt)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, node.key, node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        node.name = self._now(node.name, self._bound)
        self._every([*node.decorator_list, *node.bases, *node.keywords])
        before = self._read, self._bound
        self._bound = self._around | bound(node.body)
        for number, statement in enumerate(node.body):  # a class reads the file's name until it has bound its own
            self._read = self._around | bound(node.body[:number])
            self.visit(statement)
        self._read, self._bound = before

    def _function(self, node: _Function) -> None:
        node.name = self._now(node.name, self._bound)
        self._every([*node.decorator_list, node.args, *([node.returns] if node.returns else [])])
        with self._within([node.args, *node.body]):
            self._every(node.body)

    def _comprehension(self, node: _Comprehension, *elements: ast.expr) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        with self._within([one.target for one in node.generators]):
            self._every([first.target, *first.ifs, *others, *elements])

    @contextmanager
    def _within(self, nodes: list[ast.AST] | list[ast.expr]) -> Iterator[None]:
        before = self._read, self._bound, self._around
        self._read = self._bound = self._around = (self._around - _declared_global(nodes)) | bound(nodes)
        yield
        self._read, self._bound, self._around = before

    def _every(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _now(self, name: str, own: set[str]) -> str:
        return name if name in own else self._change.get(name, name)
