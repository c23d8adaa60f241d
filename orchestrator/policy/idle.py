"""Which functions nothing runs, neither the import nor a call of the entry: self tests, and references in torch.

Owns that question, and answers it by names alone, which no inference can get wrong: a function is idle where its name
stands nowhere but under `__main__` and in the bodies of idle functions. What is decorated, nested, magic or a method
is not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from orchestrator.source import Source, is_demo


def idle(source: Source, entry: str) -> frozenset[ast.AST]:
    """The top-level functions that cannot run in the judge."""
    kernels = {kernel.node for kernel in source.kernels}
    functions: dict[str, ast.FunctionDef] = {}
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and node not in kernels and not node.decorator_list:
            functions[node.name] = node
    candidates = {name: node for name, node in functions.items() if name != entry and not name.startswith("__")}
    pending = _mentioned(_outside(source.tree, frozenset(candidates.values())))
    while pending:
        used = [candidates.pop(name) for name in pending if name in candidates]
        pending = _mentioned(statement for node in used for statement in node.body)
    return frozenset(candidates.values())


def mentioned(source: Source, idle: frozenset[ast.AST]) -> frozenset[str]:
    """The names that stand in what may run."""
    return frozenset(_mentioned(_outside(source.tree, idle)))


def _outside(tree: ast.Module, candidates: Collection[ast.AST]) -> Iterable[ast.AST]:
    """What runs for certain: all but the bodies of the candidates, and the block under `__main__`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node in candidates:
            yield node.args
            yield from [node.returns] if node.returns is not None else []
        elif not is_demo(node):
            yield node


def _mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
