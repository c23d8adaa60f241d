"""What the language's functions and operators make of abstract values. Pure functions, one for each kind of operation.

Owns what a sum, a where or an exp does to lanes, padding and precision. Knows no kernel and no statement: the walk is
`flow`'s.
"""

from __future__ import annotations

import ast

from orchestrator.audit import values
from orchestrator.audit.values import UNKNOWN, Pad, Value

REDUCTIONS = {"sum": "sum", "max": "max", "min": "min", "reduce": "reduce", "argmax": "max", "argmin": "min"}
SCANS = {"cumsum", "cumprod", "associative_scan"}
KEEPING = {"multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "cast", "to", "abs", "sqrt", "assume"}
MAPS = {"exp", "exp2", "log", "log2", "rsqrt", "sigmoid", "cos", "sin", "erf", "floor", "ceil", "tanh", "sqrt_rn"}


def comparison(parts: list[Value]) -> Value:
    """A mask from what is compared, or from masks."""
    result = parts[0]
    for part in parts[1:]:
        result = values.combined(ast.BitAnd(), result, part, ast.Pass())
    boundless = frozenset().union(*(part.boundless for part in parts))
    return result.but(
        is_mask=True, dtype="", wrapping=frozenset(), pad=Pad.NONE, base="", constant=None, boundless=boundless
    )


def subscript(value: Value, index: ast.expr) -> Value:
    """`x[:, None]`: new axes; the others keep their lanes."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if value.rank is None:
        return value
    places, number = {}, 0
    for place, part in enumerate(parts):
        if isinstance(part, ast.Slice):
            places[number] = place
            number += 1
        elif not (isinstance(part, ast.Constant) and part.value is None):
            return UNKNOWN
    moved = {axis: places.get(axis, axis) for axis in range(max(value.rank, number) + 1)}
    return value.but(
        rank=max(len(parts), value.rank),
        axes=frozenset(moved.get(axis, axis) for axis in value.axes),
        pad_axes=frozenset(moved.get(axis, axis) for axis in value.pad_axes),
    )


def transposed(value: Value) -> Value:
    """Rows and columns exchanged."""
    if value.rank != 2:
        return value
    flip = {0: 1, 1: 0}
    return value.but(axes=frozenset(flip[a] for a in value.axes), pad_axes=frozenset(flip[a] for a in value.pad_axes))


def result(
    node: ast.Call,
    name: str,
    arguments: list[ast.expr],
    operands: list[Value],
    keywords: dict[str, ast.expr],
    named: dict[str, Value],
) -> Value:
    """What a call gives: `operands` and `named` are the values of `arguments` and `keywords`."""
    first = operands[0] if operands else Value()
    if name in REDUCTIONS and operands:
        return _reduced(node, name, first, axis_of(name, arguments, keywords), "keep_dims" in keywords)
    if name == "where" and len(operands) == 3:
        return _where(operands[0], operands[1], operands[2])
    if name in ("to", "cast") and operands:
        return _cast(first, arguments[1:] or list(keywords.values()))
    if name in ("zeros", "full", "zeros_like"):
        return _filled(name, arguments, operands, keywords, named)
    if name == "dot" and len(operands) >= 2:
        return _dot(operands, keywords, named)
    if name in ("maximum", "minimum", "max", "min") and len(operands) >= 2:
        return _extreme(name, operands[0], operands[1], node)
    if name in MAPS and operands:
        return _mapped(node, name, first)
    return _plain(name, arguments, operands, named)


def _plain(name: str, arguments: list[ast.expr], operands: list[Value], named: dict[str, Value]) -> Value:
    first = operands[0] if operands else Value()
    match name:
        case "program_id" | "num_programs":
            row = name == "program_id"
            return Value(dtype="int", indexed=row, row=row, runtime=not row)
        case "arange":
            end = arguments[1] if len(arguments) > 1 else None
            extent = frozenset({ast.unparse(end)} if end is not None else ())
            return Value(rank=1, axes=frozenset({0}), dtype="int", indexed=True, extents=extent, boundless=extent)
        case "abs":
            pad = Pad.FILLED if first.pad is Pad.LOW else first.pad
            return first.but(positive=True, pad=pad)
        case "sqrt":
            return first.but(positive=True, root=True, plain_sum=frozenset(), sum_of_squares=frozenset())
        case "trans" | "permute":
            return transposed(first)
        case "float" if arguments and isinstance(arguments[0], ast.Constant):
            return Value(constant=_number(arguments[0].value))
        case "make_block_ptr":
            return (first if operands else named.get("base", UNKNOWN)).but(descriptor=True)
        case "make_tensor_descriptor":
            return first.but(descriptor=True)
        case "advance":
            return first
        case "cdiv":
            return Value(dtype="int", runtime=any(one.runtime for one in operands))
    if name in KEEPING and operands:
        return first
    loads = frozenset().union(*(one.loads for one in operands)) if operands else frozenset()
    return UNKNOWN.but(loads=loads, shifted=True)


def _reduced(node: ast.Call, name: str, value: Value, axis: int | None, keep: bool) -> Value:
    kind = REDUCTIONS[name]
    result = values.reduced(value, axis, keep).but(positive=value.positive)
    if kind == "max":
        return result.but(maximum=True)
    if kind == "sum":
        mine: frozenset[ast.AST] = frozenset({node})
        return result.but(
            sums_of_exponentials=value.exponentials,
            sum_of_squares=mine if value.square else frozenset(),
            plain_sum=frozenset() if value.square else mine,
        )
    return result


def _where(condition: Value, chosen: Value, otherwise: Value) -> Value:
    value = values.joined(chosen, otherwise)
    rank = value.rank if condition.rank is None or value.rank is None else max(value.rank, condition.rank)
    pad, pad_axes, spoiled = pad_of_filler(otherwise), condition.axes | chosen.pad_axes, otherwise.spoiled
    told = chosen if chosen.loads else otherwise  # the other side is a constant, which no exp makes infinite
    added = chosen.constant is not None and pad is Pad.LOW  # a mask to be added, whatever its lanes were chosen by
    if rank is None or (condition.chooses and chosen.pad is Pad.NONE and not added):
        pad, pad_axes = Pad.NONE, frozenset()
    elif not condition.axes >= chosen.pad_axes:  # along the other axes its padding stays what it was
        pad_axes = condition.axes
        if chosen.pad is Pad.FILLED:
            pad, pad_axes, spoiled = Pad.FILLED, chosen.pad_axes - condition.axes, chosen.spoiled
    return value.but(
        rank=rank,
        axes=value.axes | condition.axes,
        pad=pad,
        pad_axes=pad_axes,
        branched=chosen.branched,
        spoiled=spoiled if pad is Pad.FILLED else None,
        restored=chosen.pad is Pad.FILLED and pad in (Pad.ZERO, Pad.LOW),
        selected=(chosen.selected or not chosen.loads) and (otherwise.selected or not otherwise.loads),
        undefined=frozenset() if pad is not Pad.FILLED else value.undefined,
        dtype=chosen.dtype,
        is_mask=False,
        short_of=chosen.short_of | condition.extents,
        exponentials=chosen.exponentials | otherwise.exponentials,
        shifted=told.shifted,
        square=chosen.square,
        base=chosen.base or otherwise.base,
        clamped=True,
        loads=chosen.loads | otherwise.loads,
    )


def _cast(value: Value, arguments: list[ast.expr]) -> Value:
    target = ast.unparse(arguments[0]) if arguments else ""
    short = target.rsplit(".", 1)[-1]
    if short in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint64"):
        dtype = {"int32": "int", "uint64": "int64"}.get(short, short)
    else:
        dtype = "cast"  # to something that the source names: an element type, a constexpr
    return value.but(dtype=dtype)


def _filled(
    name: str,
    arguments: list[ast.expr],
    operands: list[Value],
    keywords: dict[str, ast.expr],
    named: dict[str, Value],
) -> Value:
    if name == "zeros_like" and operands:
        return operands[0].but(pad=Pad.ZERO, constant=0.0, loads=frozenset(), undefined=frozenset())
    place = 2 if name == "full" else 1
    content = named.get("value") or (operands[1] if name == "full" and len(operands) > 1 else Value(constant=0.0))
    kind = keywords.get("dtype") or (arguments[place] if len(arguments) > place else None)
    dtype = ast.unparse(kind).rsplit(".", 1)[-1] if kind is not None else ""
    shape = arguments[0] if arguments else keywords.get("shape")
    rank = len(shape.elts) if isinstance(shape, (ast.Tuple, ast.List)) else None
    axes = frozenset(range(rank or 0))
    pad = Pad.ZERO if name == "zeros" else _pad_of_constant(content)
    pad = Pad.NONE if pad is Pad.FILLED else pad
    return Value(rank=rank, axes=axes, pad=pad, pad_axes=axes, dtype=dtype, constant=content.constant, positive=True)


def _dot(operands: list[Value], keywords: dict[str, ast.expr], named: dict[str, Value]) -> Value:
    left, right = operands[0], operands[1]
    third = operands[2] if len(operands) > 2 else named.get("acc", Value(dtype="float32", positive=True))
    pad_axes = (left.pad_axes & {0}) | (right.pad_axes & {1})
    pad = Pad.ZERO if pad_axes and Pad.FILLED not in (left.pad, right.pad) else Pad.NONE
    dtype = third.dtype or "float32"
    if "out_dtype" in keywords:
        dtype = ast.unparse(keywords["out_dtype"]).rsplit(".", 1)[-1]
    return Value(
        rank=2,
        axes=frozenset({0, 1}),
        pad=pad,
        pad_axes=pad_axes,
        dtype=dtype,
        loads=left.loads | right.loads,
        positive=left.positive and right.positive and third.positive,
    )


def _extreme(name: str, left: Value, right: Value, node: ast.Call) -> Value:
    value = values.combined(ast.Pow(), left, right, node)
    if name.startswith("max"):
        pad = left.pad if right.pad is Pad.LOW else right.pad if left.pad is Pad.LOW else value.pad
        return value.but(pad=pad, maximum=True, positive=left.positive or right.positive)
    return value.but(clamped=True)


def _mapped(node: ast.Call, name: str, value: Value) -> Value:
    pad, spoiled = value.pad, value.spoiled
    if pad is Pad.LOW and name in ("exp", "exp2", "sigmoid"):
        pad = Pad.ZERO
    elif pad is Pad.LOW or (pad is Pad.ZERO and name not in ("sin", "tanh", "erf", "floor", "ceil", "sqrt_rn")):
        pad, spoiled = Pad.FILLED, node
    raw = name in ("exp", "exp2") and not value.shifted and not value.negated and bool(value.loads)
    return Value(
        rank=value.rank,
        axes=value.axes,
        pad=pad,
        pad_axes=value.pad_axes,
        branched=value.branched,
        spoiled=spoiled,
        undefined=value.undefined,
        dtype=value.dtype,
        extents=value.extents,
        short_of=value.short_of,
        loads=value.loads,
        exponentials=frozenset({node}) if raw else frozenset(),
        positive=name in ("exp", "exp2", "sigmoid", "rsqrt", "sqrt_rn"),
        root=name == "sqrt_rn",
        shifted=name in ("log", "log2"),
    )


def axis_of(name: str, arguments: list[ast.expr], keywords: dict[str, ast.expr]) -> int | None:
    """The axis of a reduction, where it is written as a number."""
    if name not in REDUCTIONS and name not in SCANS:
        return None
    node = keywords.get("axis") or (arguments[1] if len(arguments) > 1 else None)
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _pad_of_constant(value: Value) -> Pad:
    if value.constant == 0:
        return Pad.ZERO
    if value.constant is not None and value.constant <= values.LOWEST:
        return Pad.LOW
    return Pad.ZERO if value.pad is Pad.ZERO and value.constant is None and value.axes else Pad.FILLED


def pad_of_filler(value: Value) -> Pad:
    """What lanes hold that are filled with this: of a value that is no constant it can only be said if it is padded."""
    return _pad_of_constant(value) if value.constant is not None else value.pad


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
