"""Which accesses to global memory are not coalesced, read from the text of Triton's GPU dialect.

An access is coalesced where the axis along which a warp's lanes lie is one along which addresses follow each other. For
each tile of pointers this follows how its offsets were made: what a step along an axis multiplies. A stride that
Triton did not fix to 1 is not 1 at that launch. Pure; what is not understood is claimed of no access.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_LAYOUT = re.compile(
    r"^(#\w+) = #ttg\.blocked<\{.*?threadsPerWarp = \[([\d, ]+)\].*?order = \[([\d, ]+)\]", re.MULTILINE
)
_LOC = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_PLACE = re.compile(r'"[^"]*":(\d+):\d+')
_OPERATION = re.compile(r"^\s*(?:(%\w+)(?::\d+)? = )?([\w.]+) ?(.*?)(?: loc\((#loc\d*)\))?$")
_NAME = re.compile(r"%\w+(?:#\d+)?")
_CARRIED = re.compile(r"(%\w+) = (%\w+(?:#\d+)?)")
_ARGUMENT = re.compile(r"(%\w+): i(?:32|64)\b")
_TILE = re.compile(r"tensor<((?:\d+x)+)[^,]*, (#\w+)>")
_ACCESS = re.compile(r"^(?:tt\.(?:load|store)|ttg\.async_copy_global_to_local|amd\w*\.buffer_(?:load|store))$")
_OFFSETS = re.compile(r"%\w+\[(%\w+(?:#\d+)?)\]")  # of AMD's buffer operations, beside a base
_LANES = 32

Step = int | None  # what one step along an axis adds to an offset; None: not known
_SOME = 2  # stands for a stride that is not known but is not 1


@dataclass(frozen=True)
class _Value:
    """An integer, a tile of them or of pointers: steps by axis, nothing for what is the same everywhere."""

    steps: Mapping[int, Step] = field(default_factory=dict)
    constant: int | None = None
    argument: bool = False  # of the kernel, not fixed to 1


_UNIFORM = _Value()


def uncoalesced(text: str) -> tuple[int, ...]:
    """Lines of the source whose access to global memory steps through it with a stride across the lanes of a warp."""
    layouts = {name: (_numbers(threads), _numbers(order)) for name, threads, order in _LAYOUT.findall(text)}
    places = dict(_LOC.findall(text))
    values = {name: _Value(argument=True) for name in _ARGUMENT.findall(_signature(text))}
    lines = set()
    for row in text.splitlines():
        found = _OPERATION.match(row)
        if found is None:
            continue
        result, operation, rest, place = found.groups()
        if _ACCESS.match(operation):
            names = _OFFSETS.findall(rest) or _NAME.findall(rest)
            if names and _strides(values.get(names[0], _UNIFORM), rest, layouts):
                lines.add(_line(place, places))
        _carry(operation, result, rest, values)
        if result is not None and result not in values:
            values[result] = _made(operation, rest, values)
    return tuple(sorted(lines - {0}))


def _signature(text: str) -> str:
    return next((line for line in text.splitlines() if "tt.func public" in line), "")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _strides(pointers: _Value, rest: str, layouts: Mapping[str, tuple[Sequence[int], Sequence[int]]]) -> bool:
    tile = next((one for one in _TILE.findall(rest) if one[1] in layouts), None)
    if tile is None:
        return False
    sizes = [int(size) for size in tile[0].rstrip("x").split("x")]
    threads, order = layouts[tile[1]]
    if len(sizes) != len(order):
        return False
    lanes = next((axis for axis in order if threads[axis] > 1 and sizes[axis] > 1), None)
    elements = 1
    for size in sizes:
        elements *= size
    if lanes is None or elements < _LANES:
        return False
    step = pointers.steps.get(lanes, 0)
    return step is not None and abs(step) > 1


def _carry(operation: str, result: str | None, rest: str, values: dict[str, _Value]) -> None:
    """What a loop hands on moves as a whole: it keeps the steps that it begins with."""
    if operation != "scf.for" or "iter_args(" not in rest:
        return
    pairs = _CARRIED.findall(rest.split("iter_args(", 1)[1].split(")", 1)[0])
    for number, (inner, begin) in enumerate(pairs):
        values[inner] = values.get(begin, _UNIFORM)
        if result is not None:
            values[f"{result}#{number}"] = values[inner]
    if result is not None and len(pairs) == 1:
        values[result] = values[pairs[0][0]]


def _made(operation: str, rest: str, values: Mapping[str, _Value]) -> _Value:
    operands = [values.get(name, _UNIFORM) for name in _NAME.findall(rest.split(" : ", 1)[0])]
    one = operands[0] if operands else _UNIFORM
    match operation.split(".", 1)[-1]:
        case "constant":
            number = re.match(r"(?:dense<)?(-?\d+)>? ", rest)
            return _Value(constant=int(number[1]) if number else None)
        case "make_range":
            return _Value({0: 1})
        case "splat" | "broadcast" | "convert_layout" | "extsi" | "extui" | "trunci" | "index_cast" | "remsi" | "remui":
            return one
        case "expand_dims":
            axis = _number_of("axis", rest)
            return _Value({at + (at >= axis): step for at, step in one.steps.items()})
        case "trans":
            order = re.search(r"order = array<i32: ([\d, ]+)>", rest)
            moved = _numbers(order[1]) if order else ()
            return _Value({moved.index(at): step for at, step in one.steps.items() if at in moved})
        case "addi" | "addptr" | "subi" if len(operands) == 2:
            return _sum(one, operands[1], -1 if operation.endswith("subi") else 1)
        case "muli" if len(operands) == 2:
            return _product(one, operands[1])
    touched = {axis for operand in operands for axis in operand.steps}
    return _Value(dict.fromkeys(touched | _axes(rest))) if "tensor<" in rest else _Value()


def _axes(rest: str) -> set[int]:
    """Of the tile that an operation makes: nothing is known along any of them."""
    shapes = re.findall(r"tensor<((?:\d+x)+)", rest)
    return set(range(shapes[-1].count("x"))) if shapes else set()


def _number_of(name: str, rest: str) -> int:
    found = re.search(rf"{name} = (\d+)", rest)
    return int(found[1]) if found else 0


def _sum(left: _Value, right: _Value, sign: int) -> _Value:
    steps: dict[int, Step] = {}
    for axis in {*left.steps, *right.steps}:
        first, second = left.steps.get(axis, 0), right.steps.get(axis, 0)
        steps[axis] = None if first is None or second is None else first + sign * second
    same = left.constant is not None and right.constant is not None
    return _Value(steps, (left.constant or 0) + sign * (right.constant or 0) if same else None)


def _product(left: _Value, right: _Value) -> _Value:
    if left.steps and right.steps:
        return _Value(dict.fromkeys({*left.steps, *right.steps}))
    tile, factor = (left, right) if left.steps else (right, left)
    by: Step = factor.constant if factor.constant is not None else _SOME if factor.argument else None
    if not tile.steps:
        same = tile.constant is not None and by is not None and factor.constant is not None
        return _Value(constant=tile.constant * factor.constant if same else None)  # type: ignore[operator]
    return _Value({axis: None if step is None or by is None else step * by for axis, step in tile.steps.items()})


def _line(place: str | None, places: Mapping[str, str]) -> int:
    """The line of the source, through names and calls; 0 where none is said."""
    for _ in range(8):
        text = places.get(place or "", "")
        if found := _PLACE.search(text):
            return int(found[1])
        inner = re.search(r"#loc\d+", text)
        if inner is None:
            return 0
        place = inner[0]
    return 0
