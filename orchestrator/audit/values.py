"""What is known of a value inside a kernel without running it, and how operations change it.

Owns the abstract values: which axes have lanes, what padded lanes hold, the element type as far as the source says it,
and where the value came from. Where nothing is known, nothing is claimed: a rule may only object to what is here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

NOTHING: frozenset[ast.AST] = frozenset()
LOWEST = -1e4  # a constant below it stands for minus infinity


class Pad(Enum):
    """What lanes outside the mask hold."""

    NONE = "nothing is padded"
    ZERO = "0"
    LOW = "minus infinity"
    FILLED = "something else"


@dataclass(frozen=True)
class Value:
    """One value. Sets hold the nodes that it came from, so that a rule can name the line."""

    rank: int | None = 0
    axes: frozenset[int] = frozenset()  # along which it has lanes of its own
    pad: Pad = Pad.NONE
    pad_axes: frozenset[int] = frozenset()
    spoiled: ast.AST | None = None  # where the padded lanes ceased to hold what they were loaded with
    restored: bool = False  # its padded lanes held something else and were set back
    branched: bool = False  # of two branches that met one had set its padding, the other not
    undefined: frozenset[ast.AST] = NOTHING  # masked loads without `other` whose padded lanes are still in it
    dtype: str = ""  # "float32", "float16", "int64", "int", "input" (as loaded); "" where it is not known
    constant: float | None = None
    base: str = ""  # the parameter that a pointer started from
    moved: bool = False  # it has been indexed by a program, a lane or a loop
    runtime: bool = False  # a size or stride that the caller passes takes part
    indexed: bool = False  # a program id, a lane or a loop's variable takes part
    row: bool = False  # a program id or a loop's variable takes part
    wrapping: frozenset[ast.AST] = NOTHING  # products of 32-bit integers that may pass 2**31
    clamped: bool = False  # by a remainder or a minimum
    is_mask: bool = False
    chooses: bool = False  # an equality: it picks lanes out, and is no bound
    extents: frozenset[str] = frozenset()  # names of the block sizes that its lanes run over
    short_of: frozenset[str] = frozenset()  # block sizes of which a mask left lanes out
    loads: frozenset[ast.AST] = NOTHING
    maximum: bool = False  # a maximum over lanes takes part
    shifted: bool = False  # something was subtracted from it
    negated: bool = False
    exponentials: frozenset[ast.AST] = NOTHING  # exp of something from which nothing was subtracted
    sums_of_exponentials: frozenset[ast.AST] = NOTHING
    square: bool = False
    positive: bool = False
    sum_of_squares: frozenset[ast.AST] = NOTHING
    plain_sum: frozenset[ast.AST] = NOTHING
    squared_mean: frozenset[ast.AST] = NOTHING
    root: bool = False
    descriptor: bool = False
    selected: bool = False  # as it was loaded, or one of several such: to do it twice is to do it once
    boundless: frozenset[str] = frozenset()  # arange extents that no program or loop offset was added to

    def but(self, **changes: object) -> Value:
        """The same with changes."""
        return replace(self, **changes)  # type: ignore[arg-type]


UNKNOWN = Value(rank=None)


def joined(left: Value, right: Value) -> Value:
    """What is known of a value that is one or the other."""
    if left == right:
        return left
    merged = _mixed(left, right)
    padded = _telling(left, right)
    return merged.but(
        pad=padded.pad,
        pad_axes=padded.pad_axes,
        spoiled=padded.spoiled,
        branched=merged.branched or {left.pad, right.pad} == {Pad.ZERO, Pad.LOW} or _restored_in_one(left, right),
        constant=left.constant if left.constant == right.constant else None,
        dtype=left.dtype if left.dtype == right.dtype else "",
        base=left.base or right.base,
        clamped=left.clamped and right.clamped,
        maximum=left.maximum or right.maximum,
        shifted=left.shifted or right.shifted,
        positive=left.positive and right.positive,
        boundless=left.boundless & right.boundless,
        is_mask=left.is_mask and right.is_mask,
        root=left.root and right.root,
        selected=left.selected and right.selected,
        square=left.square and right.square,
        sum_of_squares=left.sum_of_squares | right.sum_of_squares,
        plain_sum=left.plain_sum | right.plain_sum,
        exponentials=left.exponentials | right.exponentials,
        sums_of_exponentials=left.sums_of_exponentials | right.sums_of_exponentials,
    )


def _telling(left: Value, right: Value) -> Value:
    """Of two values that meet, the one whose padding counts: a start value of a constant says nothing."""
    if left.rank is None or right.rank is None:
        return UNKNOWN
    if left.constant is not None and right.constant is not None:
        return left.but(pad=Pad.NONE, pad_axes=frozenset(), spoiled=None)
    if left.constant is not None or right.constant is not None:
        return left if left.constant is None else right
    return right if left.pad is Pad.NONE or right.pad is Pad.FILLED else left


def _restored_in_one(left: Value, right: Value) -> bool:
    """Whether one of two values that meet had its padded lanes set back, the other not: a constant may say why."""
    kept = [one for one in (left, right) if one.pad is not Pad.FILLED]
    return len(kept) == 1 and kept[0].restored


def _mixed(left: Value, right: Value) -> Value:
    """What every operation of two values keeps of both."""
    rank = None if left.rank is None or right.rank is None else max(left.rank, right.rank)
    left, right = _widened(left, rank), _widened(right, rank)
    return Value(
        rank=rank,
        axes=left.axes | right.axes,
        pad_axes=left.pad_axes | right.pad_axes,
        restored=left.restored or right.restored,
        branched=left.branched or right.branched,
        undefined=left.undefined | right.undefined,
        runtime=left.runtime or right.runtime,
        indexed=left.indexed or right.indexed,
        row=left.row or right.row,
        wrapping=left.wrapping | right.wrapping,
        extents=left.extents | right.extents,
        short_of=left.short_of | right.short_of,
        loads=left.loads | right.loads,
        maximum=left.maximum or right.maximum,
    )


def _widened(value: Value, rank: int | None) -> Value:
    """Broadcast to more axes: new ones come first."""
    if rank is None or value.rank is None or value.rank == rank:
        return value
    more = rank - value.rank
    return value.but(
        axes=frozenset(axis + more for axis in value.axes), pad_axes=frozenset(axis + more for axis in value.pad_axes)
    )


def _dtype(left: Value, right: Value) -> str:
    kinds = {value.dtype for value in (left, right) if value.constant is None or not value.dtype}
    if len(kinds) == 1:
        return kinds.pop()
    for kind in ("float64", "float32"):
        if kind in kinds:
            return kind
    if "int64" in kinds and kinds <= {"int", "int64", ""}:
        return "int64"
    floats = kinds - {"int", "int64"}
    return floats.pop() if len(floats) == 1 else ""


def combined(op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
    """`left op right`, at `node`."""
    value = _mixed(left, right).but(dtype=_dtype(left, right))
    match op:
        case ast.Add() | ast.Sub():
            value = _sum(op, left, right, value)
        case ast.Mult():
            value = _product(left, right, value, node)
        case ast.Div():
            value = _quotient(left, right, value)
        case ast.Mod():
            return value.but(clamped=True, boundless=frozenset())
        case ast.BitAnd() | ast.BitOr():
            return value.but(is_mask=left.is_mask or right.is_mask)
        case _:
            return value  # what integers become of a division or a shift is not followed
    return _blamed(value, left, right, node)


def _sum(op: ast.Add | ast.Sub, left: Value, right: Value, value: Value) -> Value:
    left, right = _counted(left), _counted(right)
    if left.constant == 0 or right.constant == 0:
        other = right if left.constant == 0 else left
        value = value.but(pad=other.pad, pad_axes=other.pad_axes)
    else:
        value = _padded(left, right, value, lambda one, two: _sum_of_pads(op, one, two), fills=True)
        if value.pad is Pad.FILLED and not value.loads:  # counts and offsets, not data
            value = value.but(pad=Pad.NONE, pad_axes=frozenset())
    subtracted = isinstance(op, ast.Sub) and right.constant is None
    return value.but(
        base=left.base or right.base,
        moved=left.moved or right.moved or left.indexed or right.indexed,
        clamped=left.clamped or right.clamped,
        shifted=subtracted or left.shifted or right.shifted,
        positive=isinstance(op, ast.Add) and left.positive and right.positive,
        square=False,
        squared_mean=NOTHING,
        sum_of_squares=left.sum_of_squares if right.constant == 0 else (left.sum_of_squares | right.sum_of_squares),
        plain_sum=left.plain_sum | right.plain_sum,
        boundless=_boundless(left, right),
        sums_of_exponentials=left.sums_of_exponentials | right.sums_of_exponentials,
        constant=_arithmetic(op, left, right),
    )


def _counted(value: Value) -> Value:
    """A mask as a summand: 0 outside."""
    return value.but(pad=Pad.ZERO, pad_axes=value.axes) if value.is_mask else value


def _sum_of_pads(op: ast.Add | ast.Sub, left: Pad, right: Pad) -> Pad:
    if left is Pad.LOW or (isinstance(op, ast.Add) and right is Pad.LOW):
        return Pad.LOW
    return left if left is right else Pad.FILLED


def _padded(
    left: Value, right: Value, value: Value, combine: Callable[[Pad, Pad], Pad], *, fills: bool = False
) -> Value:
    """The padding of a result, axis by axis: along an axis on which an operand is not padded it holds true values.

    Where the axes differ, those that no longer hold a neutral value are kept: they are what a rule asks about. `fills`:
    an operand with lanes of loaded data there, none of them masked, makes the result's lanes data too.
    """
    if value.rank is None:
        return value.but(pad=Pad.NONE, pad_axes=frozenset())  # of one operand nothing is known
    left, right = _widened(left, value.rank), _widened(right, value.rank)
    axes = left.pad_axes | right.pad_axes
    if not axes:
        return value.but(pad=Pad.NONE if left.pad is right.pad is Pad.NONE else combine(left.pad, right.pad))
    pads = {
        axis: combine(
            left.pad if axis in left.pad_axes else Pad.NONE, right.pad if axis in right.pad_axes else Pad.NONE
        )
        for axis in axes
    }
    for axis in axes if fills else ():
        if any(_filled_with_data(one, axis) for one in (left, right)):
            pads[axis] = Pad.NONE
    worst = max(pads.values(), key=list(Pad).index)
    return value.but(pad=worst, pad_axes=frozenset(axis for axis, pad in pads.items() if pad is worst))


def _filled_with_data(value: Value, axis: int) -> bool:
    return bool(value.loads) and axis in value.axes and (value.pad is Pad.NONE or axis not in value.pad_axes)


def _boundless(left: Value, right: Value) -> frozenset[str]:
    """The lanes that no program or loop has moved: one block is all there is of them."""
    if (left.row and not right.row and right.boundless) or (right.row and not left.row and left.boundless):
        return frozenset()
    return left.boundless | right.boundless


def _product(left: Value, right: Value, value: Value, node: ast.AST) -> Value:
    scaled = not (left.axes and right.axes)
    value = _padded(left, right, value, lambda one, two: _product_of_pads(one, two, scaled))
    if left.is_mask or right.is_mask:
        masked = left if left.is_mask else right
        value = value.but(pad=Pad.ZERO, pad_axes=value.pad_axes | masked.axes, undefined=NOTHING)
    wraps = _narrow(left) and _narrow(right) and (left.indexed and right.runtime or right.indexed and left.runtime)
    return value.but(
        wrapping=value.wrapping | ({node} if wraps else NOTHING),
        square=_is_square(node),
        positive=_is_square(node) or (left.positive and right.positive),
        squared_mean=left.plain_sum & right.plain_sum,
        sum_of_squares=left.sum_of_squares if not right.axes else right.sum_of_squares,
        plain_sum=left.plain_sum if not right.plain_sum else NOTHING,
        shifted=left.shifted or right.shifted,
        exponentials=left.exponentials | right.exponentials,
        negated=left.negated or right.negated,
        clamped=left.clamped and right.constant is not None,
        boundless=left.boundless | right.boundless,
        constant=_arithmetic(ast.Mult(), left, right),
    )


def _product_of_pads(left: Pad, right: Pad, scaled: bool) -> Pad:
    if Pad.ZERO in (left, right):
        return Pad.ZERO
    if Pad.LOW in (left, right) and scaled:
        return Pad.LOW
    return Pad.NONE if left is right is Pad.NONE else Pad.FILLED


def _quotient_of_pads(left: Pad, right: Pad) -> Pad:
    if right is Pad.NONE:
        return left
    return Pad.ZERO if left is Pad.ZERO else Pad.FILLED


def _quotient(left: Value, right: Value, value: Value) -> Value:
    return _padded(left, right, value, _quotient_of_pads).but(
        shifted=left.shifted,
        positive=left.positive and right.positive,
        sum_of_squares=left.sum_of_squares,
        plain_sum=left.plain_sum,
        square=left.square and not right.axes,
        squared_mean=left.squared_mean,
        exponentials=left.exponentials if not right.exponentials else NOTHING,
        constant=_arithmetic(ast.Div(), left, right),
    )


def _narrow(value: Value) -> bool:
    """Whether it may be a 32-bit integer as far as the source says."""
    return value.dtype in ("", "int") and not value.loads


def _is_square(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and ast.dump(node.left) == ast.dump(node.right)


def _arithmetic(op: ast.operator, left: Value, right: Value) -> float | None:
    if left.constant is None or right.constant is None:
        return None
    match op:
        case ast.Add():
            return left.constant + right.constant
        case ast.Sub():
            return left.constant - right.constant
        case ast.Mult():
            return left.constant * right.constant
        case _:
            return left.constant / right.constant if right.constant else None


def _blamed(value: Value, left: Value, right: Value, node: ast.AST) -> Value:
    """With the place where padding was spoiled: the first of them."""
    if value.pad is not Pad.FILLED:
        return value
    return value.but(spoiled=left.spoiled or right.spoiled or node)


def reduced(value: Value, axis: int | None, keep: bool) -> Value:
    """What a reduction along an axis leaves; None is along all."""
    if value.rank is None or axis is None:
        rank = 0 if axis is None else None
        return Value(rank=rank, dtype=value.dtype, loads=value.loads, short_of=value.short_of, extents=value.extents)
    axis %= max(value.rank, 1)
    axes = _dropped(value.axes, axis, keep)
    pad_axes = _dropped(value.pad_axes, axis, keep)
    return Value(
        rank=value.rank if keep else value.rank - 1,
        axes=axes,
        pad=value.pad if pad_axes else Pad.NONE,
        pad_axes=pad_axes,
        spoiled=value.spoiled if pad_axes else None,
        dtype=value.dtype,
        loads=value.loads,
        short_of=value.short_of,
        extents=value.extents,
    )


def _dropped(axes: frozenset[int], axis: int, keep: bool) -> frozenset[int]:
    return frozenset(one - (one > axis and not keep) for one in axes if one != axis)
