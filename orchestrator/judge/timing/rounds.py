"""Rounds at one shape: in each, every contender times one block of replays, in random order, on the same GPU.

Owns the order, the lengths of the blocks and what becomes of the two clocks. Who takes part, and whether what a replay
wrote is right, is the session's business.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.timing import clocks, statistics
from orchestrator.judge.timing.clocks import Clocks
from orchestrator.judge.timing.contender import Contender
from orchestrator.judge.timing.statistics import Block

_FIRST = 4  # replays of the block that says how long a block should be
_BLOCK_US = 2500.0
_REPLAYS = (4, 20)
_CHECKED = 2  # rounds whose last replay is looked at, beside the very last
_CALLS_US = 5000.0
_CALLS = (5, 100)
_CALL_BLOCKS = 3


class ContenderFailed(Exception):
    """One of them failed, by name; what it means depends on whose code it runs."""

    def __init__(self, name: str, failure: CandidateFailed) -> None:
        super().__init__(f"{name}: {failure}")
        self.name = name
        self.failure = failure


@dataclass
class Series:
    """What one contender's rounds came to."""

    latencies_us: list[float] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def clocks(self) -> Clocks:
        """By its own account and by the judge's clock."""
        return Clocks(statistics.latency_us(self.latencies_us), statistics.slope_us(self.blocks))

    def at_least(self, us: float) -> list[float]:
        """The latencies, raised so that what they come to is no less than that."""
        missing = max(0.0, us - statistics.latency_us(self.latencies_us))
        return [latency + missing for latency in self.latencies_us]


def length(contenders: Mapping[str, Contender], *, alone: bool) -> int:
    """How many replays a short block should have, by a first block of each."""
    walls = [_block(contenders, name, _FIRST, alone=alone)[1].wall_us for name in contenders]
    wanted = int(_BLOCK_US / (statistics.median(walls) / (_FIRST + 1)))
    return min(max(wanted, _REPLAYS[0]), _REPLAYS[1])


def alternate(
    contenders: Mapping[str, Contender], rounds: int, draw: random.Random, look: Callable[[], None], *, alone: bool
) -> dict[str, Series]:
    """The rounds, half of them with blocks twice as long. `look` is called after some blocks of the first contender.

    Which blocks those are, and how long each is, nobody can know beforehand. `alone`: everyone's replays are waited
    for with the whole device, because one of them may leave work where events do not see it. Raises ContenderFailed.
    """
    few = length(contenders, alone=alone)
    lengths = [few * (1 + number % 2) for number in range(rounds)]
    draw.shuffle(lengths)
    looked = {*draw.sample(range(rounds), min(_CHECKED, rounds)), rounds - 1}
    first, found = next(iter(contenders)), {name: Series() for name in contenders}
    for number, replays in enumerate(lengths):
        for name in draw.sample(list(contenders), len(contenders)):
            latency, block = _block(contenders, name, replays, alone=alone)
            found[name].latencies_us.append(latency)
            found[name].blocks.append(block)
            if name == first and number in looked:
                look()
    return found


def _block(contenders: Mapping[str, Contender], name: str, replays: int, *, alone: bool) -> tuple[float, Block]:
    try:
        return contenders[name].time(replays, alone=alone)
    except CandidateFailed as failed:
        raise ContenderFailed(name, failed) from failed


def unreported_us(candidate: Series, ours: Sequence[Series]) -> float:
    """What the candidate's replays take the judge beyond what its process says they take."""
    return clocks.unreported_us(candidate.clocks, [series.clocks for series in ours])


def by_the_judges_clock(candidate: Series, ours: Sequence[Series]) -> list[float]:
    """The candidate's latencies where no graph holds it to its word: never below what the judge waited."""
    overhead = clocks.overhead_us([series.clocks for series in ours])
    return candidate.at_least(candidate.clocks.slope_us - overhead)


def call_us(contender: Contender, latency_us: float) -> float | None:
    """A plain call as its caller sees it, launch included; None where it drowns in the noise of the judge's clock."""
    count = int(min(max(_CALLS_US / latency_us, _CALLS[0]), _CALLS[1]))
    blocks = [contender.calls(count * factor) for _ in range(_CALL_BLOCKS) for factor in (1, 2)]
    took = statistics.slope_us(blocks)
    return took if took > 0 else None
