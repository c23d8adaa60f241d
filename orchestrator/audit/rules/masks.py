"""Lanes outside the data: accesses without a mask, and padding that gets into a result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit.context import Context, is_power
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.flow import Access, Flow
from orchestrator.audit.rules.base import rule
from orchestrator.audit.values import Pad, Value

SUMMING = ("sum", "cumsum")


@rule(
    "unmasked-access",
    Severity.HIGH,
    Part.MEMORY,
    "a load or store over lanes without a mask",
    why="A block has as many lanes as its size, the data need not: lanes beyond it read or overwrite foreign memory.",
    repair="Give `mask=` (offsets below the size), for loads with `other=` too.",
)
def unmasked(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        bounded = [one for one in flow.accesses.values() if _bounded(one)]
        masked = {(one.where, one.block) for one in bounded}
        for one in flow.accesses.values():
            if one.checked or one.mask is not None or one.guarded or not one.pointer.axes or one.pointer.clamped:
                continue
            what = one.kind if one.kind != "atomic" else "atomic operation"
            if (one.where, one.block) in masked:
                own = context.launches_of(flow.name) or one.base in {other.base for other in bounded}
                message = f"this {what} has no mask, another access at the same offsets has one"
                yield Hit(one.node, message, None if own else Severity.MEDIUM)  # of a helper: a longer buffer, perhaps
            elif not _exact(context, flow, one):
                sizes = " and ".join(sorted(one.pointer.extents)) or "the block"
                yield Hit(one.node, f"this {what} is in bounds only where {sizes} divides the size", Severity.MEDIUM)


def _bounded(access: Access) -> bool:
    """Whether its mask compares lanes with a bound, and does not choose among them by data."""
    return access.mask is not None and bool(access.mask.axes) and not access.mask.loads


def _exact(context: Context, flow: Flow, access: Access) -> bool:
    """Whether every launch passes sizes themselves as the block's extents."""
    kinds = [[e.kind for e in context.extents(flow, name)] for name in access.pointer.extents]
    return bool(kinds) and all(known and set(known) == {"size"} for known in kinds)


@rule(
    "load-without-other",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "a masked load without `other` feeds a reduction",
    why="What masked lanes hold is undefined without `other`; that today's backends fill in zeros is not promised.",
    repair="Give the neutral element: `other=0.0` before a sum, `other=-float('inf')` before a maximum.",
)
def without_other(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        seen: set[ast.AST] = set()
        for reduction in flow.of(*SUMMING, "reduce", "max", "min", "argmax", "argmin", "dot"):
            for operand in reduction.operands:
                for load in operand.undefined - seen:
                    if reduction.name == "dot" or reduction.axis is None or reduction.axis in _pads(operand):
                        seen.add(load)
                        yield Hit(load, f"masked lanes reach the {reduction.name} in line {_line(reduction.node)}")


def _is_one(context: Context, flow: Flow, name: str) -> bool:
    """Whether a block is of one lane, as far as the file says."""
    known = context.extents(flow, name)
    return bool(known) and all(one.kind == "constant" and one.value == 1 for one in known)


def _pads(operand: Value) -> set[int]:
    return {*operand.pad_axes, *(axis - (operand.rank or 0) for axis in operand.pad_axes)}


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


@rule(
    "padding-in-sum",
    Severity.HIGH,
    Part.CORRECTNESS,
    "padded lanes enter a sum",
    why="Lanes outside the mask no longer hold zero where they are summed (a mean was subtracted, or exp made them 1), "
    "so a variance or a logsumexp grows with every padded lane; powers of two hide it.",
    repair="Set them back before the sum: `tl.where(mask, value, 0.0)`; before an exp load with `other=-float('inf')`.",
)
def padded_sum(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for reduction in flow.of(*SUMMING):
            operand = reduction.operands[0] if reduction.operands else None
            if operand is None or operand.pad is not Pad.FILLED or operand.spoiled is None:
                continue
            if reduction.axis is None and operand.rank not in (0, 1):
                continue
            if reduction.axis is not None and reduction.axis not in _pads(operand):
                continue
            message = f"lanes outside the mask are not zero here: they changed in line {_line(operand.spoiled)}"
            if operand.branched:
                yield Hit(reduction.node, f"{message}, unless a branch has set them before", Severity.MEDIUM)
            elif single := sorted(name for name in operand.extents if _is_one(context, flow, name)):
                yield Hit(reduction.node, f"{message}; along {single[0]} only where it is more than 1", Severity.MEDIUM)
            else:
                yield Hit(reduction.node, message)


@rule(
    "padding-in-maximum",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "padding of zero enters a maximum or minimum",
    why="A padded zero is larger than every negative value: the maximum of a row of negative values comes out as 0.",
    repair="Load with `other=-float('inf')` before a maximum, `other=float('inf')` before a minimum.",
)
def padded_maximum(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for reduction in flow.of("max", "min", "argmax", "argmin"):
            operand = reduction.operands[0] if reduction.operands else None
            if operand is None or len(reduction.operands) > 1 and reduction.axis is None:
                continue
            harmless = operand.positive and reduction.name in ("max", "argmax")
            axes_meet = reduction.axis is None or reduction.axis in _pads(operand)
            if operand.pad is Pad.ZERO and operand.pad_axes and operand.loads and axes_meet and not harmless:
                side = "below" if "max" in reduction.name else "above"
                yield Hit(reduction.node, f"wrong for a row whose values are all {side} 0")


@rule(
    "divided-by-block",
    Severity.HIGH,
    Part.CORRECTNESS,
    "a sum is divided by the block's size",
    why="The block is the size rounded up; a mean over it is too small wherever the size is no power of two.",
    repair="Divide by the number of elements.",
)
def divided_by_block(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for division in flow.of("/"):
            right = division.node.right if isinstance(division.node, ast.BinOp) else None
            if not isinstance(right, ast.Name) or right.id not in flow.constexprs:
                continue
            left = division.operands[0]
            if (left.plain_sum or left.sum_of_squares) and right.id in left.extents:
                if right.id in left.short_of and not division.chosen:
                    yield Hit(division.node, f"the mask leaves lanes of {right.id} out, the divisor counts them")
                else:
                    message = f"right only where the size is exactly {right.id}"
                    yield Hit(division.node, message, Severity.MEDIUM)


@rule(
    "arange-not-a-power",
    Severity.HIGH,
    Part.CORRECTNESS,
    "`tl.arange` over what is no power of two",
    why="Triton compiles `tl.arange` for constant ranges whose length is a power of two only.",
    repair="Round up (`triton.next_power_of_2`), pass it as `tl.constexpr` and mask what lies beyond.",
)
def arange(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for call in flow.of("arange"):
            node = call.node
            if not isinstance(node, ast.Call) or len(node.args) != 2 or ast.unparse(node.args[0]) != "0":
                continue
            end = node.args[1]
            launched = context.launches_of(flow.name) and not context.is_helper(flow)
            ordinary = isinstance(end, ast.Name) and end.id in flow.parameters and end.id not in flow.constexprs
            if launched and ordinary:
                yield Hit(node, f"{ast.unparse(end)} is an ordinary argument, not a tl.constexpr")
                continue
            for extent in context.extents(flow, ast.unparse(end)):
                if extent.kind == "constant" and extent.value is not None and not is_power(extent.value):
                    yield Hit(node, f"{ast.unparse(end)} can be {extent.value}")
                elif extent.kind == "size":
                    message = f"a launch passes a size as {ast.unparse(end)}: it fails unless that is a power of two"
                    yield Hit(node, message, Severity.MEDIUM)


@rule(
    "block-not-tied",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "one block of fixed size has to hold a whole row",
    why="Columns beyond the block are never touched: the mask hides that a longer row is cut off, without an error.",
    repair="Use `triton.next_power_of_2(N)`, loop over the row, or refuse longer rows on the host.",
)
def fixed_block(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        names = {name for one in flow.accesses.values() if one.mask is not None for name in one.mask.boundless}
        for bound in context.launches_of(flow.name):
            refused = bound.scope.function is not None and any(
                isinstance(node, (ast.Assert, ast.Raise)) for node in ast.walk(bound.scope.function.node)
            )
            for name in sorted(names & set(bound.arguments)):
                kinds = [one for one in context.extents(flow, name) if one.kind in ("constant", "capped")]
                if kinds and not refused and not _looped(flow, name):
                    size = f"{kinds[0].value}" if kinds[0].value is not None else "the cap"
                    yield Hit(bound.launch.call, f"{name} is at most {size} here: a longer row is cut off")


def _looped(flow: Flow, name: str) -> bool:
    return name in flow.loop_bounds


@rule(
    "block-too-large",
    Severity.HIGH,
    Part.PERFORMANCE,
    "a block of very many elements",
    why="Triton refuses tensors of more than 1048576 elements; from about 65536 on, compiling takes minutes and "
    "registers spill.",
    repair="Loop over smaller blocks.",
)
def large_block(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for call in flow.of("arange"):
            node = call.node
            if not isinstance(node, ast.Call) or len(node.args) != 2:
                continue
            name = ast.unparse(node.args[1])
            for extent in context.extents(flow, name):
                if extent.kind == "constant" and extent.value is not None and extent.value > 65536:
                    grave = extent.value > 1048576
                    message = f"{name} is {extent.value}" + (": it does not compile" if grave else "")
                    yield Hit(node, message, None if grave else Severity.MEDIUM)
