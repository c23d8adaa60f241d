"""What the rules share: the facts, where a node stands, and how a refusal or a note is worded.

Owns no rule.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from orchestrator.policy.infer import Inference
from orchestrator.policy.values import EMPTY, Callable_, Comprehension, Scope, Value, inner
from orchestrator.records import Finding, Status
from orchestrator.source import Source, is_demo

Remark: TypeAlias = Finding | str  # a str is a note: seen, allowed, and said


@dataclass(frozen=True)
class Place:
    """Where a node stands."""

    parent: ast.AST
    function: ast.AST  # the innermost def or lambda, or the module
    scope: Scope  # in which its names are looked up
    kernel: bool = False  # in a kernel's body
    demo: bool = False  # under `if __name__ == "__main__":`
    idle: ast.AST | None = None  # the function around it that nothing runs
    quoting: bool = False  # in a raise or an assert's message
    annotation: bool = False

    @property
    def at_import(self) -> bool:
        """Whether it runs when the file is imported."""
        return isinstance(self.function, ast.Module) and not self.demo

    @property
    def dead(self) -> bool:
        """Whether it cannot run in the judge."""
        return self.demo or self.idle is not None


Rule: TypeAlias = Callable[["Check", Any, Place], Iterator[Remark]]


@dataclass(frozen=True)
class Check:
    """One file under check."""

    source: Source
    inference: Inference
    allow: frozenset[str]
    live: frozenset[ast.AST]  # functions that may run
    idle: frozenset[ast.AST]  # functions that cannot
    mentioned: frozenset[str]  # names in what may run
    attributes: frozenset[str]  # attribute names that the file's own classes define

    def value(self, node: ast.AST | None) -> Value:
        """What an expression may be; the empty value where it was not evaluated (kernel bodies)."""
        return self.inference.values.get(node, EMPTY) if isinstance(node, ast.expr) else EMPTY

    def tensor(self, node: ast.AST | None) -> bool:
        """Whether an expression may be a tensor."""
        return self.value(node).tensor

    def runs(self, place: Place) -> bool:
        """Whether the place may be reached; elsewhere unknown values are not held against the file."""
        return place.at_import or place.function in self.live

    def forbidden(self, node: ast.AST, message: str, advice: str) -> Finding:
        """Something that no honest kernel needs."""
        return self.source.finding(Status.FORBIDDEN, node, message, advice)

    def fallback(self, node: ast.AST, message: str, advice: str) -> Finding:
        """The host computes."""
        return self.source.finding(Status.FALLBACK, node, message, advice)

    def note(self, node: ast.AST, message: str) -> str:
        """Something grey that is allowed."""
        line = self.source.line(node)
        return f"{self.source.filename}:{line}: {message}"

    def grey(self, node: ast.AST, name: str, what: str, status: Status, advice: str) -> Remark:
        """Something grey that an op may allow by name: a note if it does, else a finding that says how."""
        if name in self.allow:
            return self.note(node, f"{name} {what}; this op allows it")
        how = f'{advice}; an op that needs it lists "{name}" among its host operations'
        return self.source.finding(status, node, f"{name} {what}", how)


def walk(check: Check) -> Iterator[tuple[ast.AST, Place]]:
    """Every node with its place, parents first."""
    tree = check.source.tree
    kernels = {kernel.node for kernel in check.source.kernels}
    top = Place(tree, tree, check.inference.module)
    pending: list[tuple[ast.AST, Place]] = [(child, top) for child in reversed(tree.body)]
    while pending:
        node, place = pending.pop()
        yield node, place
        scope = check.inference.scopes.get(node)
        own = set(map(id, inner(node))) if scope is not None else set()
        for child in reversed(list(ast.iter_child_nodes(node))):
            there = replace(place, scope=scope) if scope is not None and id(child) in own else place
            there = _inside(node, child, there, kernels)
            pending.append((child, replace(there, idle=node) if there.function is node in check.idle else there))


def _inside(node: ast.AST, child: ast.AST, place: Place, kernels: set[Any]) -> Place:
    if isinstance(node, Callable_) and child in ([node.body] if isinstance(node, ast.Lambda) else node.body):
        return Place(node, node, place.scope, kernel=place.kernel or node in kernels, demo=place.demo, idle=place.idle)
    if isinstance(node, ast.comprehension) and child is node.iter and _is_first(node, place.parent):
        assert place.scope.parent is not None
        place = replace(place, scope=place.scope.parent)
    quoting = place.quoting or isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and child is node.msg)
    annotation = place.annotation or (_annotates(node, child) and not _evaluated(node, place))
    demo = place.demo or (is_demo(node) and isinstance(place.function, ast.Module))
    return replace(place, parent=node, quoting=quoting, annotation=annotation and child is not None, demo=demo)


def _annotates(node: ast.AST, child: ast.AST) -> bool:
    return child in (getattr(node, "annotation", None), getattr(node, "returns", None))


def _evaluated(node: ast.AST, place: Place) -> bool:
    """Whether an annotation is computed when the entry is called: that of a function inside one, or of an element."""
    inside = not isinstance(place.function, ast.Module)
    return inside and not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))


def _is_first(generator: ast.comprehension, comprehension: ast.AST) -> bool:
    """Whether what it goes through is evaluated outside the comprehension."""
    return isinstance(comprehension, Comprehension) and comprehension.generators[0] is generator
