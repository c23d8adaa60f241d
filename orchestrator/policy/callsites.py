"""Rules about calls on the host: what is called, and whether it is given tensors.

Owns the verdict on a call by the kind of its callee. Mentioning a name is judged in `mentions` already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.policy import names
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.host import NO_CACHE, key
from orchestrator.policy.mentions import WRITE_A_KERNEL, read
from orchestrator.policy.values import ADDRESS, TENSOR, Ref, Value
from orchestrator.records import Status

CALLABLE = names.words(
    """name builtin def launcher class inst apply partial pass guard registrar method kernel super manager
    factory renewer warmup _init_handles"""
)
# What makes a value that later calls could find changed.
_CHANGING = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_NAMED = 60  # characters of what is called, in a message
CONTAINERS = ("box", "meta", "ctx", "super", "inst", "kernel")


def call(check: Check, node: ast.Call, place: Place) -> Iterator[Remark]:
    """Every call on the host."""
    yield from _keywords(check, node)
    if place.kernel or place.annotation:
        return
    function = check.value(node.func)
    kinds = {ref.kind for ref in function.refs}
    yield from _hands_over(check, node, function)
    yield from _hooks(check, node, function)
    if not kinds & CALLABLE and check.runs(place) and not place.demo:
        advice = "call functions by the name they are defined under"
        refuse = check.fallback if function.tensor else check.forbidden
        what = ast.unparse(node.func)
        called = what if len(what) <= _NAMED else "something"
        yield refuse(node, f"a call of {called}, which cannot be followed to a function", advice)
    for ref in function.refs:
        rule = _CALLS.get(ref.kind)
        if rule is not None:
            yield from rule(check, node, ref, place)


def _keywords(check: Check, node: ast.Call) -> Iterator[Remark]:
    for keyword in node.keywords:
        absent = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
        if keyword.arg in names.CONFIG_FORBIDDEN and not absent:
            advice = "leave it out; for autotuning use reset_to_zero or restore_value"
            yield check.forbidden(keyword.value, f"{keyword.arg}= runs other code around the kernel", advice)


_BEFORE_HOOKS = 5  # positional parameters of triton.Config and of triton.autotune that stand before their hooks
_TUNING = ("triton.Config", "triton.autotune")


def _hooks(check: Check, node: ast.Call, function: Value) -> Iterator[Remark]:
    """A hook that is given by position, by a star, or by way of a partial."""
    held = [check.inference.partials[ref.key][0] for ref in function.of("partial") if isinstance(ref.key, ast.AST)]
    tuning = {str(ref.key) for value in (function, *held) for ref in value.of("name")} & set(_TUNING)
    partial = "functools.partial" in {ref.key for ref in function.of("name")} and bool(node.args)
    if partial:
        tuning = {str(ref.key) for ref in check.value(node.args[0]).of("name")} & set(_TUNING)
    if not tuning:
        return
    starred = [arg.value for arg in node.args if isinstance(arg, ast.Starred)]
    starred += [keyword.value for keyword in node.keywords if keyword.arg is None]
    late = [] if starred or partial or held else node.args[_BEFORE_HOOKS:]
    values = [check.value(arg) for arg in late] + [check.inference.heap.load(check.value(one)) for one in starred]
    if partial or held:
        values += [check.value(arg) for arg in node.args[int(partial) :]]
    if any(value.of(kind) for value in values for kind in ("def", "kernel", "partial", "inst")):
        advice = "leave it out; for autotuning use reset_to_zero or restore_value"
        yield check.forbidden(node, f"{min(tuning)} is given a function that runs around the kernel", advice)


_APPLY = names.words("map filter sorted min max functools.partial functools.reduce collections.defaultdict")


def _hands_over(check: Check, node: ast.Call, function: Value) -> Iterator[Remark]:
    """`map(abs, [x])`: a function that computes on tensors, given to something that calls it, with tensors."""
    applies = any(ref.kind in ("name", "builtin") and ref.key in _APPLY for ref in function.refs)
    targets = [target for ref in function.of("partial") for target in _partial_of(check, ref)]
    if applies:
        targets += [target for arg in _arguments(node) for target in _targets(check, check.value(arg))]
    held = function.of("partial") and any(_early(check, ref) for ref in function.of("partial"))
    if any(_computes(target) for target in targets) and (held or _takes_tensor(check, node)):
        yield check.fallback(node, "a function that computes on tensors is applied to one", WRITE_A_KERNEL)


def _targets(check: Check, value: Value) -> list[Ref]:
    partial = [target for ref in value.of("partial") for target in _partial_of(check, ref)]
    return [*value.of("builtin"), *value.of("name"), *partial]


def _partial_of(check: Check, ref: Ref) -> list[Ref]:
    target = check.inference.partials[ref.key][0] if isinstance(ref.key, ast.AST) else Value()
    return [*target.of("builtin"), *target.of("name")]


def _early(check: Check, ref: Ref) -> bool:
    """Whether a partial already holds a tensor."""
    bound = check.inference.partials[ref.key][1].all() if isinstance(ref.key, ast.AST) else []
    return any(check.inference.heap.holds(value, TENSOR) for value in bound)


def _computes(ref: Ref) -> bool:
    label = str(ref.key)
    if ref.kind == "builtin":
        return label not in names.TENSOR_SAFE_BUILTINS
    return label in names.CHECKS or not label.startswith(_CARRIES)


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _takes_tensor(check: Check, node: ast.Call, deep: bool = True) -> bool:
    values = [check.value(arg) for arg in _arguments(node)]
    return any(check.inference.heap.holds(value, TENSOR) if deep else value.tensor for value in values)


def _of_its_own(check: Check, node: ast.Call) -> bool:
    """`super(Model, self)` of a class of the file."""
    names_of = [arg.id for arg in node.args if isinstance(arg, ast.Name)]
    return len(names_of) == len(node.args) == 2 and names_of[0] in check.inference.classes and names_of[1] == "self"


def _call_builtin(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    label = str(ref.key)
    if label in ("getattr", "hasattr"):
        yield from _call_getattr(check, node, label, place)
    elif label not in names.BUILTINS:
        return
    elif label == "type" and len(node.args) != 1:
        yield check.forbidden(node, "type() makes a class", "write plain functions")
    elif label == "super" and node.args and not _of_its_own(check, node):
        yield check.forbidden(node, "super() with other arguments than the class and self", "write super().__init__()")
    elif label in names.TENSOR_SAFE_BUILTINS or not _takes_tensor(check, node, deep=label not in names.ITEM_BUILTINS):
        return
    elif label in names.ITEM_BUILTINS:
        what = f"reads a value back to the host, by {label}()"
        advice = "pass the tensor to the kernel and load the value there"
        yield check.grey(node, ".item", what, Status.FALLBACK, advice)
    elif label not in ("str", "repr") or not place.quoting:
        yield check.fallback(node, f"{label}() on a tensor computes on the host", WRITE_A_KERNEL)


def _call_getattr(check: Check, node: ast.Call, label: str, place: Place) -> Iterator[Remark]:
    key = node.args[1] if len(node.args) > 1 else None
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)) or node.keywords:
        yield check.forbidden(node, f"{label}() with a name that is not a literal", "write the attribute out")
    elif label == "getattr":
        yield from read(check, node, check.value(node.args[0]), key.value, place)
    elif key.value.startswith("__"):
        yield check.forbidden(node, "hasattr() of a hidden name", "leave it out")


# Names that pass tensors on without looking at them.
_CARRIES = ("torch.", "triton.tools.", "functools.", "typing.", "itertools.", "collections.", "dataclasses.", "types.")


def _call_name(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    dotted = str(ref.key)
    if any(keyword.arg == "out" for keyword in node.keywords):
        yield check.fallback(node, "out= lets torch write the result", WRITE_A_KERNEL)
    if dotted == "torch.tensor" and _takes_tensor(check, node):
        yield check.fallback(node, "torch.tensor() of a tensor copies it", "pass the tensor itself")
    elif dotted.startswith("torch.") and dotted.endswith("Tensor"):
        yield check.fallback(node, f"{dotted}() called", "allocate with torch.empty")
    elif (dotted in names.CHECKS or not dotted.startswith(_CARRIES)) and _takes_tensor(check, node):
        yield check.fallback(node, f"{dotted} on a tensor computes on the host", WRITE_A_KERNEL)
    elif dotted in ("torch.full", "torch.full_like") and any(check.tensor(arg) for arg in node.args[1:]):
        yield check.fallback(node, "a fill with the value of a tensor", WRITE_A_KERNEL)
    elif dotted in names.PLACED and place.function in check.live and not _says_where(node):
        message = f"{dotted} without device= allocates on the CPU, where a kernel on a GPU cannot write"
        yield check.forbidden(node, message, "give it device=x.device, or allocate by torch.empty_like(x)")
    elif dotted in names.CONSTEXPR and any(isinstance(part, _CHANGING) for arg in node.args for part in ast.walk(arg)):
        yield check.forbidden(node, "a constexpr of what can change", "give it a number, a text, a dtype or a tuple")


def _says_where(node: ast.Call) -> bool:
    """Whether a call names the device, or may: a double star can hold it."""
    return any(keyword.arg in ("device", None) for keyword in node.keywords)


def _call_method(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    label = str(ref.key)
    receiver = Value(check.value(node.func).kinds, check.value(node.func).refs - {ref})
    if receiver.tensor:
        if label in ("fill_", "new_full", "expand", "view") and any(check.tensor(arg) for arg in node.args):
            yield check.fallback(node, f".{label} with the value of a tensor", WRITE_A_KERNEL)
        return
    if receiver.of("super") and label == "__init__" and _has_errors(check) and _takes_tensor(check, node):
        yield check.fallback(node, "an error that holds a tensor, whose text would read it", "say its shape or dtype")
    if not any(receiver.of(kind) for kind in CONTAINERS):
        if _takes_tensor(check, node) and not place.quoting:
            yield check.fallback(node, f".{label} of a plain value, given a tensor, reads it", WRITE_A_KERNEL)
        return
    persistent = any(box in check.inference.heap.persistent for box in receiver.of("box"))
    if label in ("get", "pop", "setdefault") or persistent:
        for arg in _arguments(node):
            yield from key(check, node, arg)
    if label == "sort" and check.inference.heap.holds(receiver, TENSOR):
        yield check.fallback(node, "sorting tensors compares them", WRITE_A_KERNEL)


def _has_errors(check: Check) -> bool:
    return any(names.ERRORS.intersection(item.bases) for item in check.inference.classes.values())


def _call_definition(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    function = check.inference.functions.get(ref.key) if isinstance(ref.key, ast.AST) else None
    if function is None or not names.CACHING & set(function.decorators):
        return
    held = [check.value(arg) for arg in _arguments(node)]
    if any(check.inference.heap.holds(value, TENSOR | ADDRESS) for value in held):
        yield check.forbidden(node, "a cache keyed by a tensor or its address", NO_CACHE)


def _call_class(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    """`Mode(x)` compares what it is given with the value of each member."""
    if check.inference.enumeration(str(ref.key)) and _takes_tensor(check, node):
        yield check.fallback(node, "a member of an enumeration is looked up by a tensor", "look it up by a size")


def _call_kernel(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    function = check.value(node.func)
    if not any(function.of(kind) for kind in ("launcher", "pass", "method")):
        yield check.fallback(node, "a kernel called without a grid", "launch it: kernel[grid](...)")


def _call_launcher(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    """A launch; by another name than the kernel's own it is said in the report."""
    target = node.func.value if isinstance(node.func, ast.Subscript) else None
    wrapped = isinstance(target, ast.Call) and check.source.dotted(target.func) == "torch.library.wrap_triton"
    name = getattr(ref.key, "name", "")
    if not wrapped and not (isinstance(target, ast.Name) and target.id == name):
        yield check.note(node, f"the kernel {name} is launched through another name: grey, allowed")


_CALLS = {
    "builtin": _call_builtin,
    "name": _call_name,
    "method": _call_method,
    "def": _call_definition,
    "class": _call_class,
    "kernel": _call_kernel,
    "launcher": _call_launcher,
}
