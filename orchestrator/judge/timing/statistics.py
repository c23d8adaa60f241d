"""Numbers of a measurement: latencies, resampled speedups, what two clocks say. No torch, no clock, no process.

A contender's time at a shape is a list of block medians, one a round; in each round every contender had one block, in
random order and, of short kernels, at another place in memory, so a round is what is drawn again in the bootstrap. Its
latency is the mean of their middle half: what disturbs a block does not count, and of a kernel that takes one time at
some places and another elsewhere it does not jump, as a median does, from the one to the other. A speedup is the
latency of the fastest baseline over the candidate's: above 1 the candidate is faster.
"""

from __future__ import annotations

import functools
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


@functools.lru_cache(maxsize=512)  # a decision, its text and its tables ask for the same ones
def speedup(rounds: Rounds) -> Interval:
    """How many times as fast as the fastest of the baselines, at one shape."""
    return geomean_speedup([rounds])


def geomean_speedup(shapes: Sequence[Rounds]) -> Interval:
    """The geometric mean over shapes of the speedup over the fastest baseline of each.

    Which baseline is the fastest is decided in each draw anew, so that choosing the luckiest of several is in the
    interval.
    """
    return _interval(_resampled(shapes), geomean(list(map(_middle, shapes))))


def _middle(shape: Rounds) -> float:
    return min(map(latency_us, shape.baselines)) / latency_us(shape.candidate)


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


def _resampled(shapes: Sequence[Rounds]) -> Numbers:
    """Logarithms of the speedup, averaged over the shapes, one a draw.

    A few sittings, drawn again, spread by too little, by the root of (n - 1) / n; and how far they are apart is itself
    only known as well as so few tell: Student's t, with the degrees of freedom of all of them together.
    """
    draw = np.random.default_rng(_SEED)
    freedom = sum(2 * (shape.sittings - 1) for shape in shapes)  # the candidate's processes and the baseline's
    doubt = np.sqrt(freedom / draw.chisquare(freedom, _DRAWS)) if freedom else np.ones(_DRAWS)
    total = np.zeros(_DRAWS)
    for shape in shapes:
        every = [np.asarray(times, dtype=np.float64) for times in (shape.candidate, *shape.baselines)]
        mine, *theirs = map(_middle_half, _drawn(draw, every, shape.sittings))
        logarithms = np.log(np.min(theirs, axis=0)) - np.log(mine)
        if shape.sittings > 1:
            middle, few = np.log(_middle(shape)), shape.sittings / (shape.sittings - 1)
            logarithms = middle + (logarithms - middle) * np.sqrt(few) * doubt
        total += logarithms
    return total / len(shapes)


def _drawn(draw: np.random.Generator, every: Sequence[Numbers], sittings: int) -> list[Numbers]:
    """Each contender's times, a row a draw. Rounds are drawn for all alike, since what disturbs one disturbs all; of
    several sittings, whole ones for each contender apart, since its processes are its own."""
    rounds = every[0].size
    if sittings == 1:
        chosen = draw.integers(0, rounds, (_DRAWS, rounds))
        return [times[chosen] for times in every]
    apart = [times.reshape(sittings, -1) for times in every]
    return [times[draw.integers(0, sittings, (_DRAWS, sittings))].reshape(_DRAWS, -1) for times in apart]


def _interval(logarithms: Numbers, middle: float) -> Interval:
    low, high = np.exp(np.percentile(logarithms, [_TAIL, 100 - _TAIL]))
    return Interval(min(float(low), middle), middle, max(float(high), middle))
