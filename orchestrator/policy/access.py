"""Reading an element or an attribute of a value.

Owns what `value[key]` and `value.name` may be, by what the value refers to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from orchestrator.policy import names
from orchestrator.policy.values import (
    ADDRESS,
    EMPTY,
    PLAIN,
    PLAIN_VALUE,
    TENSOR,
    TENSOR_VALUE,
    Ref,
    Value,
    join,
    kept,
    refer,
)

if TYPE_CHECKING:
    from orchestrator.policy.infer import Inference

MAX_PARTS = 12  # of a dotted name; no allowed one is longer


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
        elif ref.kind == "class" and inf.enumeration(str(ref.key)):
            out = out.join(refer("inst", ref.key))
        elif ref.kind == "name" and str(ref.key).startswith("typing."):
            out = out.join(PLAIN_VALUE)
    return out if out != EMPTY or not value.kinds or value.of("box") else PLAIN_VALUE


def _argument(inf: Inference, ref: Ref, key: Hashable) -> Value:
    """An argument of a launch, looked up by name in what Triton passes to grids, heuristics and config pruning.

    By number there is none, but what a star parameter was given, and the sizes of a grid in launch_metadata.
    """
    if isinstance(key, int) and ref.key is not None:
        return Value(PLAIN, frozenset({ref}))
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
        return inf.held(owner, fields[key])
    return join(inf.held(owner, name) for name in fields)


def iterate(inf: Inference, value: Value) -> Value:
    """What a loop over value yields. Keys of launch arguments are names."""
    return PLAIN_VALUE if value.of("meta") and not value.of("box") else item(inf, value, None)


# --- attributes


def attribute(inf: Inference, owner: Value, name: str) -> Value:
    """What `owner.name` may be."""
    if names_itself(owner, name):
        return PLAIN_VALUE
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


def names_itself(owner: Value, name: str) -> bool:
    """`f.__name__` of a function or a class of the file."""
    own = bool(owner.refs) and all(ref.kind in ("def", "class") for ref in owner.refs)
    return own and not owner.tensor and name in names.TYPE_NAMES


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
    if str(ref.key).count(".") > MAX_PARTS:  # `x = x.name` in a loop must not grow for ever
        return refer("name", ref.key)
    return refer("name", f"{ref.key}.{name}")


def _of_class(inf: Inference, ref: Ref, name: str) -> Value:
    owner = str(ref.key)
    if name == "apply" and names.AUTOGRAD & set(inf.classes[owner].bases):
        return refer("apply", owner)
    method = inf.method(owner, name)
    if method is not None:
        bound = "classmethod" in method.decorators
        if bound:
            inf.bind_self(method, owner)
        return refer("def", method.node, int(bound))
    value = kept(inf.held(owner, name))
    return value.join(refer("inst", owner)) if value != EMPTY and inf.enumeration(owner) else value


_OF_MEMBER = frozenset({"value", "name", "_value_", "_name_"})


def _of_member(inf: Inference, owner: str, name: str) -> Value:
    """What a member of an enumeration has: the value of any of them, what was stored in one, or a text's methods."""
    if name in _OF_MEMBER:
        return join(kept(value) for (home, _), value in inf.attributes.items() if home == owner).join(PLAIN_VALUE)
    known = inf.attributes.get((owner, name), EMPTY)
    return known if known != EMPTY else _method(PLAIN_VALUE, name)


def _of_instance(inf: Inference, ref: Ref, name: str) -> Value:
    owner = str(ref.key)
    method = inf.method(owner, name)
    if method is None and name in names.RECORD_METHODS and "typing.NamedTuple" in inf.classes[owner].bases:
        return refer("renewer", (owner, name))
    if method is None and inf.enumeration(owner):
        return _of_member(inf, owner, name)
    if method is None:
        known = inf.held(owner, name)
        unknown = inf.final and known == EMPTY and name not in names.NN_MODULE_ATTRIBUTES
        unknown |= inf.of_error(owner, name)
        return kept(TENSOR_VALUE) if unknown else known
    bound = refer("def", method.node, 0 if "staticmethod" in method.decorators else 1)
    inf.bind_self(method, owner)
    if "property" not in method.decorators:
        return bound
    inf.edge(method.node)
    return inf.returns.get(method.node, EMPTY)


def _of_super(inf: Inference, ref: Ref, name: str) -> Value:
    """What a class of the file inherits from another; of which class it is asked is not followed."""
    out = Value(PLAIN, frozenset({ref, Ref("method", name)}))
    for owner in inf.classes:
        if inf.of_error(owner, name) and not name.startswith("__"):
            out = out.join(TENSOR_VALUE)
        for base in inf.lineage(owner)[1:]:
            inherited = inf.method(base, name)
            if inherited is not None:
                inf.bind_self(inherited, owner)
            if inherited is not None or inf.held(base, name) != EMPTY:
                out = out.join(_of_instance(inf, Ref("inst", base), name))
    return out


def _of_ctx(inf: Inference, ref: Ref, name: str) -> Value:
    if name == "saved_tensors":
        return inf.build(("saved", ref.key), {None: TENSOR_VALUE})
    if name in names.CTX_METHODS:
        return Value(PLAIN, frozenset({ref, Ref("method", name)}))
    if name == "needs_input_grad":
        return PLAIN_VALUE
    known = inf.attributes.get((f"ctx {ref.key}", name), EMPTY)
    return known if known != EMPTY else PLAIN_VALUE


def _of_kernel(inf: Inference, ref: Ref, name: str) -> Value:
    return refer("warmup", ref.key) if name == "warmup" else EMPTY


def _of_compiled(inf: Inference, ref: Ref, name: str) -> Value:
    """Of a kernel that warmup compiled, only the numbers are anything."""
    if name in ("metadata", "_init_handles"):
        return refer(name, ref.key)
    return PLAIN_VALUE if name in names.COMPILED else TENSOR_VALUE


def _of_record(inf: Inference, ref: Ref, name: str) -> Value:
    if name in names.RECORD_METHODS:
        return refer("renewer", (ref.key, name))
    return inf.heap.load(Value(PLAIN, frozenset({Ref("box", ref.key)}))).join(PLAIN_VALUE)


def _of_definition(inf: Inference, ref: Ref, name: str) -> Value:
    return refer("registrar", ref.key) if name in names.REGISTERING else PLAIN_VALUE


_ATTRIBUTES: dict[str, Callable[[Inference, Ref, str], Value]] = {
    "name": _of_name,
    "class": _of_class,
    "inst": _of_instance,
    "ctx": _of_ctx,
    "def": _of_definition,
    "record": _of_record,
    "kernel": _of_kernel,
    "compiled": _of_compiled,
    "metadata": lambda inf, ref, name: PLAIN_VALUE if name in names.COMPILED_METADATA else TENSOR_VALUE,
    "super": _of_super,
}
