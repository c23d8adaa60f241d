"""What one expression may evaluate to.

Owns one function a kind of expression, and reading an element or an attribute of a value. Owns no state: everything
learned goes into the Inference that is passed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from functools import cache
from typing import TYPE_CHECKING, Any

from orchestrator.policy import names
from orchestrator.policy.values import (
    ADDRESS,
    EMPTY,
    PLAIN,
    PLAIN_VALUE,
    TENSOR,
    TENSOR_VALUE,
    Arguments,
    Callable_,
    Comprehension,
    Ref,
    Scope,
    Value,
    join,
    kept,
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
        inf.assign(generator.target, iterate(inf, inf.eval(generator.iter, inner)), inner)
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


# --- elements


def item(inf: Inference, value: Value, key: Hashable) -> Value:
    """What `value[key]` may be; key None stands for any. An element of a tensor is a view of it."""
    out = inf.heap.load(value, key)
    if value.kinds & TENSOR:
        out = out.join(Value(value.kinds & ~(PLAIN | ADDRESS)))
    for ref in value.refs:
        if ref.kind == "meta":
            out = out.join(_argument(inf, ref, key))
        elif ref.kind == "inst":
            out = out.join(_field(inf, str(ref.key), key))
        elif ref.kind == "name" and str(ref.key).startswith("typing."):
            out = out.join(PLAIN_VALUE)
    return out if out != EMPTY or not value.kinds or value.of("box") else PLAIN_VALUE


def _argument(inf: Inference, ref: Ref, key: Hashable) -> Value:
    """An argument of a launch, looked up by name in what Triton passes to grids, heuristics and config pruning."""
    if not isinstance(key, str):
        return join(inf.kernel_arguments.values()).join(PLAIN_VALUE)
    if ref.key is None:
        return inf.kernel_arguments.get(key, PLAIN_VALUE)
    assert isinstance(ref.key, ast.AST)
    return inf.kernel_parameters.get((ref.key, key), PLAIN_VALUE)


def _field(inf: Inference, owner: str, key: Hashable) -> Value:
    """An element of a NamedTuple: by position where that is known."""
    fields = inf.fields(owner)
    if isinstance(key, int) and key < len(fields):
        return inf.attributes.get((owner, fields[key]), EMPTY)
    return join(inf.attributes.get((owner, name), EMPTY) for name in fields)


def iterate(inf: Inference, value: Value) -> Value:
    """What a loop over value yields. Keys of launch arguments are names."""
    return PLAIN_VALUE if value.of("meta") and not value.of("box") else item(inf, value, None)


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


# --- attributes


def _attribute(inf: Inference, node: ast.Attribute, scope: Scope) -> Value:
    return attribute(inf, inf.eval(node.value, scope), node.attr)


def attribute(inf: Inference, owner: Value, name: str) -> Value:
    """What `owner.name` may be."""
    out = EMPTY
    for ref in owner.refs:
        reader = _ATTRIBUTES.get(ref.kind)
        if reader is not None:
            out = out.join(reader(inf, ref, name))
    if owner.tensor:
        out = out.join(_tensor_attribute(owner, name))
    if out == EMPTY and owner.kinds:
        out = _method(owner, name)
    return out


def _method(owner: Value, name: str) -> Value:
    """A method, bound to its receiver: the value keeps the receiver's kinds and containers."""
    return Value(owner.kinds, owner.refs | {Ref("method", name)})


def _tensor_attribute(owner: Value, name: str) -> Value:
    if name in names.TENSOR_FACTS:
        return PLAIN_VALUE
    if name in names.TENSOR_VIEW_ATTRIBUTES:
        return Value(owner.kinds & ~PLAIN)
    return _method(owner, name)


def _of_name(inf: Inference, ref: Ref, name: str) -> Value:
    return refer("name", f"{ref.key}.{name}")


def _of_class(inf: Inference, ref: Ref, name: str) -> Value:
    owner = str(ref.key)
    if name == "apply" and names.AUTOGRAD & set(inf.classes[owner].bases):
        return refer("apply", owner)
    method = inf.method(owner, name)
    if method is not None:
        return refer("def", method.node, 1 if "classmethod" in method.decorators else 0)
    return kept(inf.attributes.get((owner, name), EMPTY))


def _of_instance(inf: Inference, ref: Ref, name: str) -> Value:
    owner = str(ref.key)
    method = inf.method(owner, name)
    if method is None:
        known = inf.attributes.get((owner, name), EMPTY)
        unknown = inf.final and known == EMPTY and name not in names.NN_MODULE_ATTRIBUTES
        return kept(TENSOR_VALUE) if unknown else known
    bound = refer("def", method.node, 0 if "staticmethod" in method.decorators else 1)
    inf.bind_self(method, owner)
    if "property" not in method.decorators:
        return bound
    inf.edge(method.node)
    return inf.returns.get(method.node, EMPTY)


def _of_ctx(inf: Inference, ref: Ref, name: str) -> Value:
    if name == "saved_tensors":
        return inf.build(("saved", ref.key), {None: TENSOR_VALUE})
    if name in names.CTX_METHODS:
        return Value(PLAIN, frozenset({ref, Ref("method", name)}))
    if name == "needs_input_grad":
        return PLAIN_VALUE
    known = inf.attributes.get((f"ctx {ref.key}", name), EMPTY)
    return known if known != EMPTY else PLAIN_VALUE


def _of_definition(inf: Inference, ref: Ref, name: str) -> Value:
    return refer("registrar", ref.key) if name in names.REGISTERING else PLAIN_VALUE


_ATTRIBUTES: dict[str, Callable[[Inference, Ref, str], Value]] = {
    "name": _of_name,
    "class": _of_class,
    "inst": _of_instance,
    "ctx": _of_ctx,
    "def": _of_definition,
    "record": lambda inf, ref, name: inf.heap.load(Value(PLAIN, frozenset({Ref("box", ref.key)}))).join(PLAIN_VALUE),
    "super": lambda inf, ref, name: Value(PLAIN, frozenset({ref, Ref("method", name)})),
}


# --- calls


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


def constant(node: ast.expr) -> Hashable:
    """The key of a subscript where it is a literal, not negative; None where it is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        return node.value
    return None


@cache
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
