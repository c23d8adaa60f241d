"""Sizes of examples made into dims: which axes share one, what a size is in terms of them, which sizes to try.

Pure functions of sizes that were seen. Whether a size works is for whoever runs the code to say; nothing here runs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import UsageError

Shapes = Mapping[str, Sequence[int]]
Sizes = dict[str, int]
_NAMES = {1: "N", 2: "MN", 3: "BTC", 4: "BHTD", 5: "BCDHW"}  # of the first tensor's axes, as the field has them
_MORE = "KLEFGPQRSUVXYZABCDHIJMNOTW"
_PRIMES = (3, 5, 7, 11, 13, 17, 19)
_LARGEST = 1 << 22  # elements of one tensor that a trial may have


@dataclass(frozen=True)
class Axis:
    """One axis of one tensor."""

    tensor: str
    at: int


@dataclass(frozen=True)
class Span:
    """The sizes that a dim may have: from `low` to `high` by `step`; and whether 0 works."""

    low: int
    high: int
    step: int = 1
    empty: bool = False

    def near(self, size: int) -> int:
        """The nearest size that is allowed, from below where there is one."""
        return min(max(self.low, size // self.step * self.step), self.high)

    @property
    def varies(self) -> bool:
        """Whether there is more than one."""
        return self.high > self.low


def groups(examples: Sequence[Shapes]) -> list[tuple[Axis, ...]]:
    """Axes that have the same size as each other in every example, in the order in which they are met.

    Raises UsageError where a tensor has another number of axes from call to call.
    """
    first = examples[0]
    for name, example in itertools.product(first, examples):
        if name not in example or len(example[name]) != len(first[name]):
            raise UsageError(
                f"{name} is not the same kind of tensor in every example: give examples with the same tensors, each "
                f"with as many axes"
            )
    found: dict[tuple[int, ...], list[Axis]] = {}
    for name, shape in first.items():
        for at in range(len(shape)):
            found.setdefault(tuple(example[name][at] for example in examples), []).append(Axis(name, at))
    return [tuple(axes) for axes in found.values()]


def names(parts: Sequence[tuple[Axis, ...]], ranks: Mapping[str, int], taken: Iterable[str] = ()) -> list[str]:
    """A name for each group: those of the first tensor by its number of axes, the others from the alphabet."""
    used = set(taken)
    lead = next(iter(ranks), "")
    usual = _NAMES.get(ranks.get(lead, 0), "")
    given = []
    for axes in parts:
        wanted = [usual[axis.at] for axis in axes if axis.tensor == lead and axis.at < len(usual)]
        free = (name for name in itertools.chain(wanted[-1:], _MORE, _numbered()) if name not in used)
        given.append(next(free))
        used.add(given[-1])
    return given


def _numbered() -> Iterable[str]:
    return (f"N{number}" for number in itertools.count(1))


def expression(sizes: Sequence[int], dims: Sequence[Sizes]) -> str | None:
    """What a size is in the dims, where it was sizes[i] while they were dims[i]: arithmetic for all of them.

    The plainest first: a constant, a dim, a multiple or a part of one, a sum, a product of two, a multiple of that.
    """
    if len(set(sizes)) == 1:
        return str(sizes[0])
    names_ = list(dims[0])
    for name in names_:
        if text := _linear(name, sizes, [each[name] for each in dims]):
            return text
    for one, other in itertools.combinations(names_, 2):
        if list(sizes) == [each[one] + each[other] for each in dims]:
            return f"{one} + {other}"
        product = [each[one] * each[other] for each in dims]
        if text := _linear(f"{one} * {other}", sizes, product):
            return text
    return None


def _linear(name: str, sizes: Sequence[int], dim: Sequence[int]) -> str | None:
    """name, k * name, name // k or name + k."""
    pairs = [(size, value) for size, value in zip(sizes, dim, strict=True) if value]
    if not pairs:
        return None
    size, value = pairs[0]
    candidates: list[tuple[str, Callable[[int], int]]] = [(name, lambda v: v)]
    if size and size % value == 0:
        candidates.append((f"{size // value} * {name}", lambda v, k=size // value: v * k))  # type: ignore[misc]
    if size and value % size == 0:
        candidates.append((f"{_bracketed(name)} // {value // size}", lambda v, k=value // size: v // k))  # type: ignore[misc]
    sign = "+" if size > value else "-"
    candidates.append((f"{name} {sign} {abs(size - value)}", lambda v, k=size - value: v + k))  # type: ignore[misc]
    return next((text for text, of in candidates if all(s == of(v) for s, v in zip(sizes, dim, strict=True))), None)


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text


def divisors(size: int) -> list[int]:
    """Steps that a dim of this size may have, the smallest first."""
    return [step for step in range(1, size + 1) if size % step == 0]


def probes_of_step(step: int) -> tuple[int, ...]:
    """Sizes that all work where a dim goes by this step: odd multiples, so that no smaller step hides."""
    return tuple(step * factor for factor in _PRIMES[:3])


def ladder(size: int, step: int, elements: int) -> list[int]:
    """Ever larger sizes of a dim, none a power of two times the last; `elements` is what all tensors have at `size`."""
    rungs = (step * max(size // step, 1) * factor + step for factor in (1, 2, 4, 8, 16, 64, 256))
    return [rung for rung in rungs if rung * max(elements // max(size, 1), 1) <= _LARGEST]


def around(sizes: Sizes, spans: Mapping[str, Span]) -> list[tuple[int, ...]]:
    """Shapes for a sweep: the least, odd ones in several orders, a power of two, primes, and the example's own."""

    def shape(wanted: Callable[[int], int]) -> tuple[int, ...]:
        return tuple(spans[dim].near(wanted(at) * spans[dim].step) for at, dim in enumerate(sizes))

    def turned(by: int) -> tuple[int, ...]:
        return shape(lambda at: _PRIMES[(at + by) % 3])

    least = tuple(span.low for span in spans.values())
    last = len(sizes) - 2  # the two last dims are larger: the others only repeat what those show, at the cost of time
    primes = shape(lambda at: _PRIMES[-1 - at % 4] if at >= last else 3)
    own = tuple(spans[dim].near(size) for dim, size in sizes.items())
    return list(dict.fromkeys([least, turned(0), turned(1), turned(2), shape(lambda _: 8), primes, own]))


def grown(sizes: Sizes, spans: Mapping[str, Span], elements: Callable[[Sizes], int], largest: int) -> Sizes:
    """The example made larger, each dim in turn doubled while all its tensors have at most `largest` elements."""
    now = dict(sizes)
    moved = True
    while moved:
        moved = False
        for dim, span in spans.items():
            more = now | {dim: span.near(now[dim] * 2)}
            if span.varies and more[dim] > now[dim] and elements(more) <= largest:
                now, moved = more, True
    return now
