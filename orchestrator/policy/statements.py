"""What one statement tells the inference.

Owns one function a kind of statement that binds, returns or defines. Blocks are walked by the Inference itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orchestrator.policy import access, evaluate
from orchestrator.policy.values import EMPTY, PLAIN_VALUE, Arguments, Scope, Value, parameters, refer

if TYPE_CHECKING:
    from orchestrator.policy.infer import Inference


def _assign(inf: Inference, node: ast.Assign, scope: Scope) -> None:
    value = inf.eval(node.value, scope)
    if scope is inf.module or scope.is_class:
        inf.heap.persist(value)
    for target in node.targets:
        inf.assign(target, value, scope)


def _ann_assign(inf: Inference, node: ast.AnnAssign, scope: Scope) -> None:
    inf.eval(node.annotation, scope)
    if node.value is not None:
        value = inf.eval(node.value, scope)
        if scope is inf.module or scope.is_class:
            inf.heap.persist(value)
        inf.assign(node.target, value, scope)


def _aug_assign(inf: Inference, node: ast.AugAssign, scope: Scope) -> None:
    old = inf.eval(node.target, scope)
    value = evaluate.operate(inf, node, old, inf.eval(node.value, scope), node.op)
    inf.assign(node.target, value, scope)


def _for(inf: Inference, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
    inf.assign(node.target, access.iterate(inf, inf.eval(node.iter, scope)), scope)


def _with(inf: Inference, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
    for item in node.items:
        value = inf.eval(item.context_expr, scope)
        for ref in value.of("manager"):
            assert isinstance(ref.key, ast.AST)
            inf.edge(ref.key)
            if item.optional_vars is not None:
                inf.assign(item.optional_vars, inf.yields.get(ref.key, EMPTY), scope)


def _return(inf: Inference, node: ast.Return, scope: Scope) -> None:
    value = inf.eval(node.value, scope) if node.value else PLAIN_VALUE
    add_result(inf, inf.returns, inf.current, value)


def add_result(inf: Inference, table: dict[ast.AST, Value], node: ast.AST, value: Value) -> None:
    """Join a value into what a function returns or yields."""
    old = table.get(node, EMPTY)
    table[node] = old.join(value)
    inf.changed |= table[node] != old


def _import(inf: Inference, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for item in inf.source.imports:
        if item.node is node:
            inf.put(scope, item.bound, refer("name", item.path))


def _function(inf: Inference, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    function = inf.functions[node]
    value = refer("kernel" if function.kernel else "def", node)
    inf.bind_defaults(node, scope)
    for arg in [*parameters(node), node.args.vararg, node.args.kwarg]:
        if arg is not None and arg.annotation is not None:
            inf.eval(arg.annotation, scope)
    if node.returns is not None:
        inf.eval(node.returns, scope)
    for decorator in reversed(node.decorator_list):
        value = inf.call(inf.eval(decorator, scope), Arguments((value,)), decorator)
    if not scope.is_class:
        inf.put(scope, node.name, value)
    if inf._is_entry(node) and value.of("def") and value != refer("def", node):
        order = [inf.env.get((inf.scopes[node], arg.arg), EMPTY) for arg in parameters(node)]
        outer, inf.current = inf.current, node  # a decorated entry runs its wrapper when it is called
        inf.call(value, Arguments(tuple(order)), node)
        inf.current = outer


def _class(inf: Inference, node: ast.ClassDef, scope: Scope) -> None:
    for child in [*node.bases, *node.decorator_list]:
        inf.eval(child, scope)
    inner = inf.scopes[node]
    inf.execute(node.body, inner)
    inf.put(scope, node.name, refer("class", node.name))
    for name in inner.names:
        value = inf.env.get((inner, name), EMPTY)
        if value != EMPTY:
            inf.set_attribute(node.name, name, value)


def _match(inf: Inference, node: ast.Match, scope: Scope) -> None:
    """Every capture may be the subject or any part of it."""
    subject = inf.eval(node.subject, scope)
    part = subject.join(access.iterate(inf, subject))
    for case in node.cases:
        if case.guard is not None:
            inf.eval(case.guard, scope)
        for pattern in ast.walk(case.pattern):
            for name in evaluate.captured(pattern):
                inf.put(scope, name, part)
            if isinstance(pattern, ast.MatchValue):
                inf.eval(pattern.value, scope)


STATEMENTS: dict[type[ast.stmt], Callable[[Inference, Any, Scope], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Return: _return,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Match: _match,
}
