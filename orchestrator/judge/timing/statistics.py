"""Numbers of a measurement: latencies, resampled speedups, what two clocks say. No torch, no clock, no process.

A contender's time at a shape is a list of block medians, one a round; in each round every contender had one block, in
random order and, of short kernels, at another place in memory, so a round is what is drawn again in the bootstrap. Its
latency is the mean of their middle half: what disturbs a block does not count, and of a kernel that takes one time at
some places and another elsewhere it does not jump, as a median does, from the one to the other. A speedup is the
latency of the fastest baseline over the candidate's: above 1 the candidate is faster.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

CONFIDENCE = 99  # percent of an interval: a decision asks every shape, and of many at 95 one would be off each time
_DRAWS = 4000
_SEED = 20  # the same data give the same interval
_TAIL = (100 - CONFIDENCE) / 2  # percent on either side of the interval
_LAUNCH_BOUND = 2.0  # times the launch
_SHORT_US = 20.0  # on an H200 processes lie twice as far apart where a kernel takes less


@dataclass(frozen=True)
class Interval:
    """The middle of a speedup and the ends of its interval, of `CONFIDENCE` percent."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Block:
    """Some replays of one contender: their number, and how long they took by the judge's own clock."""

    replays: int
    wall_us: float


def median(values: Sequence[float]) -> float:
    """The median."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def latency_us(blocks: Sequence[float]) -> float:
    """The mean of the middle half."""
    return float(_middle_half(np.asarray(blocks, dtype=np.float64)))


def by_sitting(blocks: Sequence[float], sittings: int) -> list[float]:
    """The latency in each of so many sittings, of which each has as many rounds."""
    each = len(blocks) // sittings
    return [latency_us(blocks[start : start + each]) for start in range(0, len(blocks), each)]


def _middle_half(values: Numbers) -> Numbers:
    """The mean of the middle half along the last axis; of one or two values, of all."""
    count = values.shape[-1]
    cut = count // 4
    mean: Numbers = np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1)
    return mean


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def fastest(baselines: Mapping[str, Sequence[float]]) -> str:
    """The name of the baseline with the lowest latency."""
    return min(baselines, key=lambda name: latency_us(baselines[name]))


@dataclass(frozen=True)
class Rounds:
    """The block medians at one shape: the candidate's and each baseline's, in the same rounds of as many sittings, of
    which each has as many rounds."""

    candidate: tuple[float, ...]
    baselines: tuple[tuple[float, ...], ...]
    sittings: int = 1

    @property
    def short(self) -> bool:
        """Whether the candidate is a short kernel here."""
        return latency_us(self.candidate) < _SHORT_US


@dataclass(frozen=True)
class Spread:
    """How far one process's latency lies from the next one's: the standard deviation of its logarithm, and the degrees
    of freedom that it is known by; 0 where nothing sat more than once."""

    deviation: float = 0.0
    freedom: int = 0


@dataclass(frozen=True)
class Apart:
    """How far processes lie apart where kernels are short, and where they are long."""

    short: Spread
    long: Spread


def apart(shapes: Sequence[Rounds]) -> Apart:
    """By the sittings at all of these shapes."""
    return Apart(*(_spread([one for one in shapes if one.short is short]) for short in (True, False)))


def _spread(shapes: Sequence[Rounds]) -> Spread:
    """What the sittings of the candidate and of the fastest baseline at each say together."""
    squares, freedom = 0.0, 0
    for shape in shapes:
        if shape.sittings == 1:
            continue
        for times in (shape.candidate, min(shape.baselines, key=latency_us)):
            of_each = np.log(by_sitting(times, shape.sittings))
            squares += float(((of_each - of_each.mean()) ** 2).sum())
            freedom += shape.sittings - 1
    return Spread(math.sqrt(squares / freedom), freedom) if freedom else Spread()


@functools.lru_cache(maxsize=512)  # a decision, its text and its tables ask for the same ones
def speedup(rounds: Rounds, processes: Apart | None = None) -> Interval:
    """How many times as fast as the fastest of the baselines, at one shape."""
    return geomean_speedup([rounds], processes)


def geomean_speedup(shapes: Sequence[Rounds], processes: Apart | None = None) -> Interval:
    """The geometric mean over shapes of the speedup over the fastest baseline of each.

    Which baseline is the fastest is decided in each draw anew, so that choosing the luckiest of several is in the
    interval. `processes`: as further shapes of the measurement say; by default as these do.
    """
    middle = geomean([min(map(latency_us, shape.baselines)) / latency_us(shape.candidate) for shape in shapes])
    return _interval(_resampled(shapes, processes or apart(shapes)), middle)


def launch_bound(us: float, launch_us: float) -> bool:
    """Whether a kernel's time is a launch's more than its own."""
    return us <= _LAUNCH_BOUND * launch_us


def slope_us(blocks: Sequence[Block]) -> float:
    """The judge's time for one replay: from blocks of N and of 2N replays, what does not grow with N taken off."""
    few, many = min(block.replays for block in blocks), max(block.replays for block in blocks)
    if few == many:
        raise ValueError("blocks of two lengths are needed")
    of_few, of_many = (median([b.wall_us for b in blocks if b.replays == length]) for length in (few, many))
    return (of_many - of_few) / (many - few)


def spread(values: Sequence[float]) -> float:
    """The distance between the quartiles, as a fraction of the median."""
    low, middle, high = np.percentile(np.asarray(values, dtype=np.float64), [25, 50, 75])
    return float((high - low) / middle)


def _resampled(shapes: Sequence[Rounds], processes: Apart) -> Numbers:
    """Logarithms of the speedup, averaged over the shapes, one a draw.

    Of a shape that sat once its rounds are drawn again, for all alike, since what disturbs one disturbs all. Of one
    that sat several times each contender's latency is drawn from Student's t, as far apart as processes are: the few
    sittings themselves, drawn again, would spread by too little, and as much or little as they happen to.
    """
    draw = np.random.default_rng(_SEED)
    short, long = (_deviations(spread, draw) for spread in (processes.short, processes.long))
    total = np.zeros(_DRAWS)
    for shape in shapes:
        every = [np.asarray(times, dtype=np.float64) for times in (shape.candidate, *shape.baselines)]
        if shape.sittings == 1:
            chosen = draw.integers(0, every[0].size, (_DRAWS, every[0].size))
            mine, *theirs = (np.log(_middle_half(times[chosen])) for times in every)
        else:
            each = (short if shape.short else long) / math.sqrt(shape.sittings)
            mine, *theirs = (np.log(_middle_half(times)) + each * draw.standard_normal(_DRAWS) for times in every)
        total += np.min(theirs, axis=0) - mine
    return total / len(shapes)


def _deviations(spread: Spread, draw: np.random.Generator) -> Numbers:
    """What the standard deviation may be, one a draw."""
    freedom = max(1, spread.freedom)
    found: Numbers = spread.deviation * np.sqrt(freedom / draw.chisquare(freedom, _DRAWS))
    return found


def _interval(logarithms: Numbers, middle: float) -> Interval:
    low, high = np.exp(np.percentile(logarithms, [_TAIL, 100 - _TAIL]))
    return Interval(min(float(low), middle), middle, max(float(high), middle))
