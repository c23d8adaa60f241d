"""What a builtin or a method gives: Python's own functions, tensors' methods, containers' methods.

Owns the containers' behaviour: what a call stores in one, and what it takes out.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING

from orchestrator.policy import names
from orchestrator.policy.access import attribute, item, iterate
from orchestrator.policy.values import (
    ADDRESS,
    EMPTY,
    PLAIN,
    PLAIN_VALUE,
    TENSOR,
    TENSOR_VALUE,
    Arguments,
    Ref,
    Value,
    fresh,
    join,
    refer,
)

if TYPE_CHECKING:
    from orchestrator.policy.infer import Inference


def contain(inf: Inference, node: ast.AST, arguments: Arguments) -> Value:
    """A new container of everything in the arguments; pairs and tuples of these count as themselves."""
    elements = join(iterate(inf, value) for value in arguments.all() if value != EMPTY)
    box = inf.build(node, {None: elements.join(PLAIN_VALUE)})
    direct = join(value for value in arguments.all() if value.tensor)
    inf.heap.store(box, None, box.join(direct))
    return box


def rows(inf: Inference, node: ast.AST, columns: list[Value]) -> Value:
    """A container of tuples, of which the columns are known."""
    row = inf.build((node, "row"), dict(enumerate(columns)))
    return inf.build(node, {None: row})


# --- builtins


def builtin(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    name = str(ref.key)
    _call_with_elements(inf, name, arguments, node)
    if name == "super":
        return refer("super", "")
    if name in ("list", "tuple", "set", "frozenset", "dict", "sorted", "reversed", "enumerate", "zip", "filter"):
        return _collect(inf, name, arguments, node)
    if name == "map":
        elements = tuple(iterate(inf, value) for value in arguments.positional[1:])
        return inf.build(node, {None: inf.call(arguments.first, Arguments(elements), node)})
    if name in ("iter", "type"):
        return arguments.first
    if name == "next":
        return join([iterate(inf, arguments.first), *arguments.positional[1:]])
    if name == "getattr" and isinstance(node, ast.Call):
        return _getattr(inf, arguments, node)
    if name in ("min", "max", "sum", "abs", "round", "pow", "divmod"):
        return _arithmetic(inf, arguments)
    if name == "slice" or name.endswith(("Error", "Exception", "Warning")):  # .start and .args give back what went in
        return contain(inf, node, arguments).join(refer("record", node))
    return PLAIN_VALUE


def _collect(inf: Inference, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name == "enumerate":
        return rows(inf, node, [PLAIN_VALUE, iterate(inf, arguments.first)])
    if name == "zip" and arguments.star == EMPTY:
        return rows(inf, node, [iterate(inf, value) for value in arguments.positional])
    if name in ("list", "tuple") and arguments.first.of("box"):
        copied = inf.build(node, {})
        inf.heap.copy(arguments.first, copied)
        return copied
    box = contain(inf, node, arguments)
    if name == "dict":
        for key, value in arguments.keywords:
            inf.heap.store(box, key, value)
    return box


def _call_with_elements(inf: Inference, name: str, arguments: Arguments, node: ast.AST) -> None:
    """`sorted(xs, key=f)` calls f on what xs holds."""
    keys = dict(arguments.keywords)
    functions = [keys["key"]] if "key" in keys else []
    if name == "filter":
        functions.append(arguments.first)
    elements = join(value.join(iterate(inf, value)) for value in arguments.positional if not value.of("def"))
    for function in functions:
        inf.call(function, Arguments((elements,)), node)


def _getattr(inf: Inference, arguments: Arguments, node: ast.Call) -> Value:
    label = node.args[1] if len(node.args) > 1 else None
    if not (isinstance(label, ast.Constant) and isinstance(label.value, str)):
        return TENSOR_VALUE
    return join([attribute(inf, arguments.first, label.value), *arguments.positional[2:]])


def _arithmetic(inf: Inference, arguments: Arguments) -> Value:
    values = [value for value in arguments.all() if not value.of("def")]
    held = any(inf.heap.holds(value, TENSOR) for value in values)
    return TENSOR_VALUE if held else Value(join(values).kinds | PLAIN)


# --- methods


def method(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    name = str(ref.key)
    receiver = Value(function.kinds, function.refs - {ref})
    out = EMPTY
    if receiver.tensor:
        out = out.join(_tensor_method(inf, name, receiver, node))
    if receiver.of("box") or receiver.of("meta"):
        out = out.join(_container_method(inf, name, receiver, arguments, node))
    return out if out != EMPTY else PLAIN_VALUE


def _tensor_method(inf: Inference, name: str, receiver: Value, node: ast.AST) -> Value:
    if name == "data_ptr":
        return Value(PLAIN | ADDRESS)
    if name in names.TENSOR_QUERIES or name in ("item", "tolist"):
        return PLAIN_VALUE
    view = Value(receiver.kinds & ~(PLAIN | ADDRESS))
    if name in names.TENSOR_PARTS:
        return inf.build(node, {None: view})
    return fresh(view) if name.startswith("new_") or name == "clone" else view


def _container_method(inf: Inference, name: str, box: Value, arguments: Arguments, node: ast.AST) -> Value:
    if name in names.MUTATORS:
        _mutate(inf, name, box, arguments)
    if name == "values":
        return inf.build(node, {None: item(inf, box, None)})
    if name == "items":
        return rows(inf, node, [PLAIN_VALUE, item(inf, box, None)])
    if name in ("get", "pop", "setdefault", "popleft", "popitem"):
        return join([item(inf, box, _key(node)), *arguments.positional[1:]])
    if name == "copy":
        return box
    return PLAIN_VALUE


def _key(node: ast.AST) -> Hashable:
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        value = node.args[0].value
        return value if isinstance(value, str) else None
    return None


def _mutate(inf: Inference, name: str, box: Value, arguments: Arguments) -> None:
    for index in names.MUTATORS[name]:
        for value in arguments.positional[index : index + 1]:
            inf.heap.store(box, None, iterate(inf, value) if name in ("extend", "update") else value)
    inf.heap.store(box, None, arguments.star.join(arguments.double))
    for key, value in arguments.keywords:
        inf.heap.store(box, key, value)
