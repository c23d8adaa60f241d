"""What one expression may evaluate to.

Owns one function a kind of expression; elements and attributes are in `access`. Owns no state: everything
learned goes into the Inference that is passed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from orchestrator.policy import names
from orchestrator.policy.access import attribute, item, iterate
from orchestrator.policy.values import (
    ADDRESS,
    EMPTY,
    PLAIN_VALUE,
    TENSOR_VALUE,
    Arguments,
    Callable_,
    Comprehension,
    Scope,
    Value,
    join,
    refer,
)

if TYPE_CHECKING:
    from orchestrator.policy.infer import Inference

Evaluator = Callable[["Inference", Any, Scope], Value]


def evaluate(inf: Inference, node: ast.expr, scope: Scope) -> Value:
    """What an expression may evaluate to; for kinds without a rule, its parts are evaluated and it is plain."""
    handler = _EXPRESSIONS.get(type(node))
    if handler is not None:
        return handler(inf, node, scope)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            inf.eval(child, scope)
    return PLAIN_VALUE


# --- names, literals, operators


def _name(inf: Inference, node: ast.Name, scope: Scope) -> Value:
    value = inf.get(node.id, scope)
    return TENSOR_VALUE if value == EMPTY and inf.final else value  # what no assignment explains may be anything


def _operator(inf: Inference, node: ast.BinOp, scope: Scope) -> Value:
    return operate(inf, node, inf.eval(node.left, scope), inf.eval(node.right, scope), node.op)


def operate(inf: Inference, node: ast.AST, left: Value, right: Value, op: ast.operator) -> Value:
    """The result of an operator: a tensor if an operand is one; lists and tuples are joined; `%` ends an address."""
    if left.tensor or right.tensor:
        return TENSOR_VALUE
    kinds = (left.kinds | right.kinds) & ~(ADDRESS if isinstance(op, ast.Mod) else 0)
    boxes = [value for value in (left, right) if value.of("box")]
    if not boxes:
        return Value(kinds)
    element = join(inf.heap.load(value) for value in boxes)
    return Value(kinds, inf.build(node, {None: element}).refs)


def _unary(inf: Inference, node: ast.UnaryOp, scope: Scope) -> Value:
    operand = inf.eval(node.operand, scope)
    return PLAIN_VALUE if isinstance(node.op, ast.Not) else Value(operand.kinds)


def _choice(inf: Inference, node: ast.BoolOp, scope: Scope) -> Value:
    return join([inf.eval(value, scope) for value in node.values])


def _if(inf: Inference, node: ast.IfExp, scope: Scope) -> Value:
    inf.eval(node.test, scope)
    return inf.eval(node.body, scope).join(inf.eval(node.orelse, scope))


def _compare(inf: Inference, node: ast.Compare, scope: Scope) -> Value:
    operands = [inf.eval(operand, scope) for operand in (node.left, *node.comparators)]
    identity = all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
    return TENSOR_VALUE if not identity and any(value.tensor for value in operands) else PLAIN_VALUE


def _walrus(inf: Inference, node: ast.NamedExpr, scope: Scope) -> Value:
    value = inf.eval(node.value, scope)
    inf.assign(node.target, value, scope.function())
    return value


def _yield(inf: Inference, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
    value = inf.eval(node.value, scope) if node.value else PLAIN_VALUE
    if isinstance(node, ast.YieldFrom):
        value = iterate(inf, value)
    old = inf.yields.get(inf.current, EMPTY)
    inf.yields[inf.current] = old.join(value)
    inf.changed |= inf.yields[inf.current] != old
    return PLAIN_VALUE


# --- containers


def _sequence(inf: Inference, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value:
    contents: dict[Hashable, Value] = {}
    starred = False
    for index, element in enumerate(node.elts):
        starred |= isinstance(element, ast.Starred)
        slot = None if starred or isinstance(node, ast.Set) else index
        contents[slot] = contents.get(slot, EMPTY).join(inf.eval(element, scope))
    value = inf.build(node, contents)
    addressed = any(content.kinds & ADDRESS for content in contents.values())
    return Value(value.kinds | (ADDRESS if addressed else 0), value.refs)


def _starred(inf: Inference, node: ast.Starred, scope: Scope) -> Value:
    return iterate(inf, inf.eval(node.value, scope))


def _dict(inf: Inference, node: ast.Dict, scope: Scope) -> Value:
    out = inf.build(node, {None: EMPTY})
    for key, element in zip(node.keys, node.values, strict=True):
        value = inf.eval(element, scope)
        if key is None:
            inf.heap.copy(value, out)
            out = Value(out.kinds, out.refs | set(value.of("meta")))
        else:
            inf.eval(key, scope)
            inf.heap.store(out, constant(key), value)
    return out


def _comprehension(inf: Inference, node: Comprehension, scope: Scope) -> Value:
    inner = inf.scopes[node]
    for generator in node.generators:
        first = generator is node.generators[0]  # evaluated outside, as Python does
        inf.assign(generator.target, iterate(inf, inf.eval(generator.iter, scope if first else inner)), inner)
        for condition in generator.ifs:
            inf.eval(condition, inner)
    if isinstance(node, ast.DictComp):
        inf.eval(node.key, inner)
        return inf.build(node, {None: inf.eval(node.value, inner)})
    return inf.build(node, {None: inf.eval(node.elt, inner)})


def _lambda(inf: Inference, node: ast.Lambda, scope: Scope) -> Value:
    inf.bind_defaults(node, scope)
    outer, inf.current = inf.current, node
    value = inf.eval(node.body, inf.scopes[node])
    old = inf.returns.get(node, EMPTY)
    inf.returns[node] = old.join(value)
    inf.changed |= inf.returns[node] != old
    inf.current = outer
    return refer("def", node)


# --- elements, attributes, calls


def _subscript(inf: Inference, node: ast.Subscript, scope: Scope) -> Value:
    owner, index = inf.eval(node.value, scope), inf.eval(node.slice, scope)
    kernels = owner.of("kernel")
    if kernels:
        for ref in kernels:
            assert isinstance(ref.key, ast.AST)
            inf.escape(index, ref.key)
        return join(refer("launcher", ref.key) for ref in kernels)
    if isinstance(node.slice, ast.Slice):
        element = item(inf, owner, None)
        return inf.build(node, {None: element}).join(Value(owner.kinds)) if owner.of("box") else element
    return item(inf, owner, constant(node.slice))


def _attribute(inf: Inference, node: ast.Attribute, scope: Scope) -> Value:
    owner = inf.eval(node.value, scope)
    return PLAIN_VALUE if names_a_type(node, scope) else attribute(inf, owner, node.attr)


def _call(inf: Inference, node: ast.Call, scope: Scope) -> Value:
    function = inf.eval(node.func, scope)
    arguments = _arguments(inf, node, scope)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        _persist_through_closure(inf, node.func, scope)
    return inf.call(function, arguments, node)


def _persist_through_closure(inf: Inference, function: ast.Attribute, scope: Scope) -> None:
    """`cache.update(...)` on a name of an enclosing function stores what outlives the call."""
    if function.attr in names.MUTATORS:
        owner = inf.values.get(function.value, EMPTY)
        inf.store_item(function.value, owner, None, EMPTY, scope)


def _arguments(inf: Inference, node: ast.Call, scope: Scope) -> Arguments:
    positional: list[Value] = []
    star = double = EMPTY
    for arg in node.args:
        value = inf.eval(arg, scope)
        if isinstance(arg, ast.Starred) or star != EMPTY:
            star = star.join(value)
        else:
            positional.append(value)
    keywords: list[tuple[str, Value]] = []
    for keyword in node.keywords:
        value = inf.eval(keyword.value, scope)
        if keyword.arg is None:
            double = double.join(item(inf, value, None))
        else:
            keywords.append((keyword.arg, value))
    return Arguments(tuple(positional), tuple(keywords), star, double)


# --- helpers


def names_a_type(node: ast.AST, scope: Scope) -> bool:
    """`type(x).__name__`, `x.__class__.__qualname__`: a text, whatever x is, as no class may say otherwise."""
    match node:
        case ast.Attribute(attr=label, value=ast.Attribute(attr="__class__")):
            return label in names.TYPE_NAMES
        case ast.Attribute(attr=label, value=ast.Call(func=ast.Name(id="type"), args=[owner], keywords=[])):
            starred = isinstance(owner, ast.Starred)
            return label in names.TYPE_NAMES and scope.resolve("type") is None and not starred
    return False


def constant(node: ast.expr) -> Hashable:
    """The key of a subscript where it is a literal, not negative; None where it is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        return node.value
    return None


@lru_cache(maxsize=64)  # of one file; without a limit every file that was ever read would be kept
def used_as_tensor(node: Callable_) -> frozenset[str]:
    """Names that a function's body treats as tensors: x.shape, x.stride(0), torch.empty_like(x)."""
    found = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and child.attr in names.EVIDENCE and isinstance(child.value, ast.Name):
            found.add(child.value.id)
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr.endswith("_like"):
            found |= {arg.id for arg in child.args[:1] if isinstance(arg, ast.Name)}
    return frozenset(found)


def captured(pattern: ast.AST) -> list[str]:
    """The names that one match pattern binds."""
    match pattern:
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
    return []


_EXPRESSIONS: dict[type[ast.expr], Evaluator] = {
    ast.Name: _name,
    ast.BinOp: _operator,
    ast.UnaryOp: _unary,
    ast.BoolOp: _choice,
    ast.IfExp: _if,
    ast.Compare: _compare,
    ast.NamedExpr: _walrus,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Starred: _starred,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Lambda: _lambda,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.Call: _call,
}
