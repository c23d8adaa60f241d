"""How many floating-point operations the code makes, as an expression in its dims, from counts at many sizes.

Owns the fit: a polynomial in the dims with exact coefficients, believed only where it gives every count, also at sizes
that it was not made from. Where there is none, it is said that the number is not known. What is counted, and how, is
the probe's (`judge.convert.flops`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from orchestrator import arithmetic
from orchestrator.convert import dims
from orchestrator.convert.asks import Asks
from orchestrator.convert.dims import Sizes, Span
from orchestrator.convert.draft import Draft

UNKNOWN = "0"
_DEGREE = 3  # of one dim, at most
_ALONG = _DEGREE + 2  # sizes of a dim that show its degree
_MOST_COUNTS = 256
_FAR_ELEMENTS = 1 << 18  # of all tensors of a call where an expression is tried

Polynomial = dict[tuple[int, ...], Fraction]  # the coefficients, by the dims' exponents


class _Unknown(Exception):
    """Why the number of operations is not known."""


async def counted(draft: Draft, probe: Asks) -> Draft:
    """The draft with its `flops`, or with a note that they are not known."""
    try:
        return replace(draft, flops=await _expression(draft, probe))
    except _Unknown as why:
        note = f"how many floating-point operations it makes is not known ({why}): its ceiling is that of memory alone"
        return replace(draft, flops=UNKNOWN, notes=(*draft.notes, note))


async def _expression(draft: Draft, probe: Asks) -> str:
    """Arithmetic that gives what is counted at every size above 1. Raises _Unknown."""
    along = {dim: _nodes(span) for dim, span in draft.spans.items() if span.varies}
    base = {dim: nodes[0] for dim, nodes in along.items()}
    rows = {dim: [{**base, dim: size} for size in nodes] for dim, nodes in along.items()}
    counts = iter(await _counts(draft, [{**base}, *itertools.chain(*rows.values())], probe))
    first = next(counts)
    degrees = {dim: _degree(dim, [next(counts) for _ in row]) for dim, row in rows.items()}
    nodes = [along[dim][: degree + 1] for dim, degree in degrees.items()]
    if math.prod(map(len, nodes)) > _MOST_COUNTS:
        raise _Unknown(f"it depends on {len(nodes)} sizes in too many ways")
    grid = list(itertools.product(*nodes))
    values = await _counts(draft, [dict(zip(along, sizes, strict=True)) for sizes in grid], probe) if nodes else [first]
    text = said(interpolated(nodes, dict(zip(grid, values, strict=True))), list(along))
    others = _others(draft)
    for sizes, count in zip(others, await _counts(draft, others, probe), strict=True):
        if arithmetic.value(text, sizes) != count:
            at = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
            raise _Unknown(f"{text} would be {arithmetic.value(text, sizes)} at {at}, where {count} are counted")
    return text


async def _counts(draft: Draft, sizes: Sequence[Sizes], probe: Asks) -> list[int]:
    found = await probe.counted(draft, [{**draft.sizes, **each} for each in sizes])
    if error := next((one.error for one in found if one.error), ""):
        raise _Unknown(error)
    return [one.flops for one in found]


def _nodes(span: Span) -> list[int]:
    """Sizes of a dim from which its degree is seen; none is 1 that need not be, since code may treat that apart."""
    first = span.near(max(span.low, 2 * span.step))
    return [size for at in range(_ALONG) if (size := first + at * span.step) <= span.high]


def _others(draft: Draft) -> list[Sizes]:
    """Sizes at which the expression must hold too: those of the cases, and one that is far from them."""
    shapes = [dict(zip(draft.dims, shape, strict=True)) for shape in draft.asked.shapes]
    several = [each for each in shapes if all(each[dim] > 1 for dim, span in draft.spans.items() if span.varies)]
    return [*several, dims.grown(draft.sizes, draft.spans, draft.elements, _FAR_ELEMENTS)]


def _degree(dim: str, counts: Sequence[int]) -> int:
    """Of the polynomial that the counts at sizes of one distance are: from there on their differences are none."""
    differences = list(counts)
    for degree in range(-1, min(_DEGREE, len(counts) - 1) + 1):
        if not any(differences):
            return max(degree, 0)
        differences = [after - before for before, after in itertools.pairwise(differences)]
    if len(counts) < _ALONG:  # a dim of few sizes: a polynomial goes through all of them
        return len(counts) - 1
    raise _Unknown(f"it does not grow with {dim} as a polynomial does: {', '.join(map(str, counts))}")


def interpolated(nodes: Sequence[Sequence[int]], values: Mapping[tuple[int, ...], int]) -> Polynomial:
    """The polynomial that has these values on the grid of those nodes."""
    bases = [{size: _lagrange(axis, size) for size in axis} for axis in nodes]
    found: Polynomial = {}
    for exponents in itertools.product(*(range(len(axis)) for axis in nodes)):
        coefficient = sum(
            value * math.prod(base[size][power] for base, size, power in zip(bases, sizes, exponents, strict=True))
            for sizes, value in values.items()
        )
        if coefficient:
            found[exponents] = Fraction(coefficient)
    return found


def _lagrange(axis: Sequence[int], size: int) -> list[Fraction]:
    """The coefficients of the polynomial that is 1 at this size and 0 at the others, the constant first."""
    coefficients = [Fraction(1)]
    for other in (one for one in axis if one != size):
        shifted, scaled = [Fraction(0), *coefficients], [-other * one for one in (*coefficients, Fraction(0))]
        coefficients = [(a + b) / (size - other) for a, b in zip(shifted, scaled, strict=True)]
    return coefficients


def said(polynomial: Polynomial, names: Sequence[str]) -> str:
    """As arithmetic, the highest powers first: "2 * M * N * K + M * N"."""
    below = math.lcm(*(one.denominator for one in polynomial.values()))
    order = sorted(polynomial, key=lambda exponents: (-sum(exponents), [-one for one in exponents]))
    terms = [_term(int(polynomial[exponents] * below), exponents, names) for exponents in order]
    text = " + ".join(terms).replace("+ -", "- ") or UNKNOWN
    return text if below == 1 else f"({text}) // {below}"


def _term(coefficient: int, exponents: Sequence[int], names: Sequence[str]) -> str:
    powers = [f"{name}**{power}" if power > 1 else name for name, power in zip(names, exponents, strict=True) if power]
    sign, size = "-" if coefficient < 0 else "", abs(coefficient)
    return sign + " * ".join([*([str(size)] if size != 1 or not powers else []), *powers])
