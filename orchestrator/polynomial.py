"""A count that depends on sizes, as arithmetic in them: the polynomial that gives it, with exact coefficients.

Owns which sizes are asked for and when a polynomial is believed: only where it gives every count, also at sizes that it
was not made from. Asks nobody itself: `fit` hands out sizes and takes counts, so that whoever counts may do it as they
like. Pure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from orchestrator import arithmetic

Sizes: TypeAlias = dict[str, int]
Polynomial: TypeAlias = dict[tuple[int, ...], Fraction]  # the coefficients, by the dims' exponents
Fit: TypeAlias = Generator[list[Sizes], list[int], str]  # yields sizes, is sent their counts, returns the arithmetic

_DEGREE = 3  # of one dim, at most
NODES = _DEGREE + 2  # sizes of a dim, equally far apart, that show its degree
_MOST_COUNTS = 256


class NoPolynomial(Exception):
    """Why the counts are none, in words."""


def fit(along: Mapping[str, Sequence[int]], others: Sequence[Sizes]) -> Fit:
    """The arithmetic. `along` has up to NODES sizes of each dim, equally far apart; `others` are sizes of all dims at
    which it must hold too. Raises NoPolynomial.
    """
    base = {dim: nodes[0] for dim, nodes in along.items()}
    rows = {dim: [{**base, dim: size} for size in nodes] for dim, nodes in along.items()}
    counts = iter((yield list(itertools.chain(*rows.values()))))
    degrees = {dim: _degree(dim, [next(counts) for _ in row]) for dim, row in rows.items()}
    nodes = [along[dim][: degree + 1] for dim, degree in degrees.items()]
    if math.prod(map(len, nodes)) > _MOST_COUNTS:
        raise NoPolynomial(f"it depends on {len(nodes)} sizes in too many ways")
    grid = list(itertools.product(*nodes))
    values = yield [dict(zip(along, sizes, strict=True)) for sizes in grid]
    found = text(interpolated(nodes, dict(zip(grid, values, strict=True))), list(along))
    for sizes, count in zip(others, (yield list(others)), strict=True):
        if (value := arithmetic.value(found, sizes)) != count:
            at = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
            raise NoPolynomial(f"{found} would be {value} at {at}, where {count} are counted")
    return found


def fitted(work: Fit, count: Callable[[Sizes], int]) -> str:
    """The arithmetic of a fit, by whoever counts at once."""
    asked = next(work)
    while True:
        try:
            asked = work.send([count(sizes) for sizes in asked])
        except StopIteration as done:
            return str(done.value)


def _degree(dim: str, counts: Sequence[int]) -> int:
    """Of the polynomial that the counts at sizes of one distance are: from there on their differences are none."""
    differences = list(counts)
    for degree in range(-1, min(_DEGREE, len(counts) - 1) + 1):
        if not any(differences):
            return max(degree, 0)
        differences = [after - before for before, after in itertools.pairwise(differences)]
    if len(counts) < NODES:  # a dim of few sizes: a polynomial goes through all of them
        return len(counts) - 1
    raise NoPolynomial(f"it does not grow with {dim} as a polynomial does: {', '.join(map(str, counts))}")


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


def text(polynomial: Polynomial, names: Sequence[str]) -> str:
    """As arithmetic, the highest powers first: "2 * M * N * K + M * N"."""
    below = math.lcm(*(one.denominator for one in polynomial.values()))
    order = sorted(polynomial, key=lambda exponents: (-sum(exponents), [-one for one in exponents]))
    terms = [_term(int(polynomial[exponents] * below), exponents, names) for exponents in order]
    total = " + ".join(terms).replace("+ -", "- ") or "0"
    return total if below == 1 else f"({total}) // {below}"


def _term(coefficient: int, exponents: Sequence[int], names: Sequence[str]) -> str:
    powers = [f"{name}**{power}" if power > 1 else name for name, power in zip(names, exponents, strict=True) if power]
    sign, size = "-" if coefficient < 0 else "", abs(coefficient)
    return sign + " * ".join([*([str(size)] if size != 1 or not powers else []), *powers])
