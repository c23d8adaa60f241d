"""Rules about host code: operators, elements, truth and formatting of values that may be tensors; caches.

Every rule asks the inference what a value may be. Calls are judged in `callsites`, names in `mentions`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.mentions import WRITE_A_KERNEL
from orchestrator.policy.values import ADDRESS, CACHED, TENSOR, Value

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
            yield from key(check, node, left)
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
    if isinstance(node.ctx, ast.Store) and _of_a_config(node.value):
        yield check.forbidden(node, "a store into a configuration, which outlives the call", NO_CACHE)
    if not owner.tensor:
        yield from key(check, node, node.slice)
        if check.inference.heap.holds(check.value(node.slice), TENSOR):
            yield check.fallback(node, "a tensor as an index or a key reads it back to the host", "index by sizes")
    elif isinstance(node.ctx, ast.Store):
        yield check.fallback(node, "a store into a tensor", "store from the kernel with tl.store")
    elif _gathers(check, node.slice):
        yield check.fallback(node, "indexing a tensor by a tensor or a list gathers in torch", WRITE_A_KERNEL)


def _of_a_config(node: ast.expr) -> bool:
    inner = node.value if isinstance(node, ast.NamedExpr) else node
    return isinstance(inner, ast.Attribute) and inner.attr == "kwargs"


def _gathers(check: Check, index: ast.expr) -> bool:
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        bounds = [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]
        if any(check.tensor(bound) for bound in bounds):
            return True
        if any(isinstance(box.key, ast.List | ast.ListComp | ast.Call) for box in check.value(part).of("box")):
            return True
    return False


def key(check: Check, node: ast.AST, key: ast.expr) -> Iterator[Remark]:
    if check.inference.heap.holds(check.value(key), ADDRESS):
        yield check.forbidden(
            node, "a device address as a key: memory is reused, so the cached answer is stale", NO_CACHE
        )


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


def default(check: Check, node: ast.arguments, place: Place) -> Iterator[Remark]:
    """A default argument is evaluated once, when the def is; at the top of the file that is the import."""
    for value in [*node.defaults, *node.kw_defaults]:
        if value is not None and place.at_import and _makes_tensor(check, value):
            yield check.forbidden(value, "a tensor made while the file is imported", "allocate inside the function")


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
