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

_DRAWS = 2000
_SEED = 20  # the same data give the same interval
_TAIL = 2.5  # percent on either side of the interval


@dataclass(frozen=True)
class Interval:
    """The middle and the 95 % interval of a speedup."""

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


def speedup(candidate: Sequence[float], baseline: Sequence[float]) -> Interval:
    """How many times as fast as that one baseline, at one shape."""
    return _speedup(tuple(candidate), tuple(baseline))


@functools.lru_cache(maxsize=512)  # a decision, its text and its tables ask for the same ones
def _speedup(candidate: tuple[float, ...], baseline: tuple[float, ...]) -> Interval:
    return _interval(_resampled([(candidate, [baseline])]), latency_us(baseline) / latency_us(candidate))


def geomean_speedup(shapes: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]]) -> Interval:
    """The geometric mean over shapes of the speedup over the fastest baseline of each.

    A shape is the candidate's block medians and those of each baseline. Which baseline is the fastest is decided in
    each draw anew, so that choosing the luckiest of several is in the interval.
    """
    middle = geomean([min(map(latency_us, baselines)) / latency_us(candidate) for candidate, baselines in shapes])
    return _interval(_resampled(shapes), middle)


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


def _resampled(shapes: Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]]) -> Numbers:
    """Logarithms of the speedup, averaged over the shapes, one a draw."""
    draw = np.random.default_rng(_SEED)
    total = np.zeros(_DRAWS)
    for candidate, baselines in shapes:
        rounds = len(candidate)
        chosen = draw.integers(0, rounds, (_DRAWS, rounds))
        mine, *theirs = (_middle_half(np.asarray(times, dtype=np.float64)[chosen]) for times in (candidate, *baselines))
        total += np.log(np.min(theirs, axis=0)) - np.log(mine)
    return total / len(shapes)


def _interval(logarithms: Numbers, middle: float) -> Interval:
    low, high = np.exp(np.percentile(logarithms, [_TAIL, 100 - _TAIL]))
    return Interval(min(float(low), middle), middle, max(float(high), middle))
