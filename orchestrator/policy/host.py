"""Rules about host code: operators, calls, elements, truth and formatting of values that may be tensors; caches.

Every rule asks the inference what a value may be. Names by themselves are judged in `mentions`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from orchestrator.policy import names
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.mentions import WRITE_A_KERNEL, read
from orchestrator.policy.values import ADDRESS, CACHED, TENSOR, Ref, Value
from orchestrator.records import Status

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.USub: "unary -",
    ast.UAdd: "unary +",
    ast.Invert: "~",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
NO_CACHE = "allocate the output in every call and compute it in every call; nothing computed may outlive the call"
CALLABLE = names.words(
    """name builtin def launcher class inst apply partial pass guard registrar method kernel super manager
    factory"""
)
CONTAINERS = ("box", "meta", "ctx", "super", "inst", "kernel")


# --- operators and truth


def _operator(check: Check, node: ast.AST, op: ast.AST, operands: list[ast.expr]) -> Iterator[Remark]:
    if not any(check.tensor(operand) for operand in operands):
        return
    symbol = SYMBOLS[type(op)]
    if symbol in check.allow:
        yield check.note(node, f"the operator {symbol} computes on a tensor in torch; this op allows it")
    else:
        yield check.fallback(node, f"the operator {symbol} on a value that may be a tensor", WRITE_A_KERNEL)


def binary(check: Check, node: ast.BinOp, place: Place) -> Iterator[Remark]:
    """`a + b`."""
    if not place.kernel and not place.annotation:
        yield from _operator(check, node, node.op, [node.left, node.right])


def augmented(check: Check, node: ast.AugAssign, place: Place) -> Iterator[Remark]:
    """`a += b`."""
    if not place.kernel:
        yield from _operator(check, node, node.op, [node.target, node.value])


def unary(check: Check, node: ast.UnaryOp, place: Place) -> Iterator[Remark]:
    """`-a`, `~a`, `not a`."""
    if place.kernel:
        return
    if isinstance(node.op, ast.Not):
        yield from _truth(check, node.operand)
    else:
        yield from _operator(check, node, node.op, [node.operand])


def compare(check: Check, node: ast.Compare, place: Place) -> Iterator[Remark]:
    """`a < b`, `a in b`. `is` and `is not` look at no element."""
    if place.kernel:
        return
    operands = [node.left, *node.comparators]
    for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
        if isinstance(op, ast.Is | ast.IsNot):
            continue
        yield from _operator(check, node, op, [left, right])
        if isinstance(op, ast.In | ast.NotIn):
            yield from _key(check, node, left)
        elif check.inference.heap.holds(check.value(left), TENSOR) and not check.tensor(left):
            yield check.fallback(node, "a comparison of containers that hold tensors", "compare shapes and dtypes")


def _truth(check: Check, test: ast.expr) -> Iterator[Remark]:
    simple = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr)
    if simple and check.tensor(test):
        advice = "for an optional tensor write `is not None`; decide by shape and dtype, never by values"
        yield check.fallback(test, "the truth of a value that may be a tensor reads it back to the host", advice)


def tested(
    check: Check, node: ast.If | ast.While | ast.IfExp | ast.Assert | ast.BoolOp | ast.comprehension, place: Place
) -> Iterator[Remark]:
    """Conditions."""
    if place.kernel:
        return
    if isinstance(node, ast.BoolOp):
        tests = node.values[:-1]
    else:
        tests = node.ifs if isinstance(node, ast.comprehension) else [node.test]
    for test in tests:
        yield from _truth(check, test)


def formatted(check: Check, node: ast.FormattedValue, place: Place) -> Iterator[Remark]:
    """`f"{x}"` prints the values of a tensor, which reads them; in an error message that is fine."""
    if not place.kernel and not place.quoting and check.tensor(node.value):
        yield check.fallback(node, "formatting a tensor reads it back to the host", "format its shape or dtype")


# --- elements


def matched(check: Check, node: ast.Match, place: Place) -> Iterator[Remark]:
    """`case 0:` compares."""
    if place.kernel or not check.inference.heap.holds(check.value(node.subject), TENSOR):
        return
    patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
    if any(isinstance(pattern, ast.MatchValue) for pattern in patterns):
        yield check.fallback(node, "match compares the values of a tensor", "decide by shape and dtype")


def subscript(check: Check, node: ast.Subscript, place: Place) -> Iterator[Remark]:
    """`a[i]`: views of a tensor are free, gathers and stores are not; an address is no key."""
    if place.kernel or place.annotation:
        return
    owner = check.value(node.value)
    if not owner.tensor:
        yield from _key(check, node, node.slice)
        if check.inference.heap.holds(check.value(node.slice), TENSOR):
            yield check.fallback(node, "a tensor as an index or a key reads it back to the host", "index by sizes")
    elif isinstance(node.ctx, ast.Store):
        yield check.fallback(node, "a store into a tensor", "store from the kernel with tl.store")
    elif _gathers(check, node.slice):
        yield check.fallback(node, "indexing a tensor by a tensor or a list gathers in torch", WRITE_A_KERNEL)


def _gathers(check: Check, index: ast.expr) -> bool:
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        bounds = [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]
        if any(check.tensor(bound) for bound in bounds):
            return True
        if any(isinstance(box.key, ast.List | ast.ListComp | ast.Call) for box in check.value(part).of("box")):
            return True
    return False


def _key(check: Check, node: ast.AST, key: ast.expr) -> Iterator[Remark]:
    if check.inference.heap.holds(check.value(key), ADDRESS):
        yield check.forbidden(
            node, "a device address as a key: memory is reused, so the cached answer is stale", NO_CACHE
        )


# --- calls


def call(check: Check, node: ast.Call, place: Place) -> Iterator[Remark]:
    """Every call on the host."""
    yield from _keywords(check, node)
    if place.kernel or place.annotation:
        return
    function = check.value(node.func)
    kinds = {ref.kind for ref in function.refs}
    yield from _hands_over(check, node, function)
    if not kinds & CALLABLE and check.runs(place) and not place.demo:
        advice = "call functions by the name they are defined under"
        refuse = check.fallback if function.tensor else check.forbidden
        yield refuse(node, "a call of something that cannot be followed", advice)
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
    return not label.startswith(_CARRIES)


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _takes_tensor(check: Check, node: ast.Call, deep: bool = True) -> bool:
    values = [check.value(arg) for arg in _arguments(node)]
    return any(check.inference.heap.holds(value, TENSOR) if deep else value.tensor for value in values)


def _call_builtin(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    label = str(ref.key)
    if label in ("getattr", "hasattr"):
        yield from _call_getattr(check, node, label, place)
    elif label not in names.BUILTINS:
        return
    elif label == "type" and len(node.args) != 1:
        yield check.forbidden(node, "type() makes a class", "write plain functions")
    elif label == "super" and node.args:
        yield check.forbidden(node, "super() with arguments", "write super().__init__()")
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
_CARRIES = ("torch.", "triton.tools.", "functools.", "typing.", "itertools.", "collections.", "dataclasses.")


def _call_name(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    dotted = str(ref.key)
    if any(keyword.arg == "out" for keyword in node.keywords):
        yield check.fallback(node, "out= lets torch write the result", WRITE_A_KERNEL)
    if dotted == "torch.tensor" and _takes_tensor(check, node):
        yield check.fallback(node, "torch.tensor() of a tensor copies it", "pass the tensor itself")
    elif dotted.startswith("torch.") and dotted.endswith("Tensor"):
        yield check.fallback(node, f"{dotted}() called", "allocate with torch.empty")
    elif not dotted.startswith(_CARRIES) and _takes_tensor(check, node):
        yield check.fallback(node, f"{dotted} on a tensor reads it back to the host", WRITE_A_KERNEL)
    elif dotted in ("torch.full", "torch.full_like") and any(check.tensor(arg) for arg in node.args[1:]):
        yield check.fallback(node, "a fill with the value of a tensor", WRITE_A_KERNEL)


def _call_method(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    label = str(ref.key)
    receiver = Value(check.value(node.func).kinds, check.value(node.func).refs - {ref})
    if receiver.tensor:
        if label in ("fill_", "new_full", "expand", "view") and any(check.tensor(arg) for arg in node.args):
            yield check.fallback(node, f".{label} with the value of a tensor", WRITE_A_KERNEL)
        return
    if not any(receiver.of(kind) for kind in CONTAINERS):
        if _takes_tensor(check, node) and not place.quoting:
            yield check.fallback(node, f".{label} of a plain value, given a tensor, reads it", WRITE_A_KERNEL)
        return
    persistent = any(box in check.inference.heap.persistent for box in receiver.of("box"))
    if label in ("get", "pop", "setdefault") or persistent:
        for arg in _arguments(node):
            yield from _key(check, node, arg)
    if label == "sort" and check.inference.heap.holds(receiver, TENSOR):
        yield check.fallback(node, "sorting tensors compares them", WRITE_A_KERNEL)


def _call_definition(check: Check, node: ast.Call, ref: Ref, place: Place) -> Iterator[Remark]:
    function = check.inference.functions.get(ref.key) if isinstance(ref.key, ast.AST) else None
    if function is None or not names.CACHING & set(function.decorators):
        return
    held = [check.value(arg) for arg in _arguments(node)]
    if any(check.inference.heap.holds(value, TENSOR | ADDRESS) for value in held):
        yield check.forbidden(node, "a cache keyed by a tensor or its address", NO_CACHE)


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
    "kernel": _call_kernel,
    "launcher": _call_launcher,
}


# --- caches


def assign(check: Check, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, place: Place) -> Iterator[Remark]:
    """Nothing computed at import; no address kept in what outlives the call."""
    if place.kernel or node.value is None:
        return
    heap = check.inference.heap
    value = check.value(node.value)
    if place.at_import and _makes_tensor(check, node.value):
        yield check.forbidden(node, "a tensor made while the file is imported", "allocate inside the entry function")
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for part in itertools.chain.from_iterable(map(ast.walk, targets)):
        owner = check.value(part.value) if isinstance(part, ast.Subscript) else Value()
        if any(box in heap.persistent for box in owner.of("box")) and heap.holds(value, ADDRESS):
            yield check.forbidden(node, "a device address kept for later calls", NO_CACHE)


def _makes_tensor(check: Check, node: ast.AST) -> bool:
    """Whether evaluating the expression makes a tensor; the body of a lambda is not evaluated yet."""
    if isinstance(node, ast.Lambda):
        return False
    return check.tensor(node) or any(_makes_tensor(check, child) for child in ast.iter_child_nodes(node))


def returned(check: Check, node: ast.Return, place: Place) -> Iterator[Remark]:
    """The entry gives back nothing that an earlier call left behind."""
    entry = check.source.function(check.inference.entry)
    if entry is None or place.function is not entry.node:
        return
    if check.inference.heap.holds(check.value(node.value), CACHED):
        yield check.forbidden(node, "the result is, or may be, kept from an earlier call", NO_CACHE)
