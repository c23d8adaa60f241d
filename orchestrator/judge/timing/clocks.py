"""Whether the times that a process reports of itself can be true, by the judge's own clock.

Event times are taken in the candidate's process, which a candidate can rewrite. The judge sees how long it waits for
N and for 2N replays; the difference is what one replay takes together with what is done before it (fresh inputs, cold
cache), which is the same for everyone. How much that is, our own baselines tell. No torch, no process.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.judge.timing.statistics import median

_SLACK_US = 5.0  # of one replay: how far the judge's clock can be off over a socket
_SLACK_SHARE = 0.10


@dataclass(frozen=True)
class Clocks:
    """One contender at one shape: what it says a replay takes, and what a replay takes the judge."""

    reported_us: float
    slope_us: float


def overhead_us(ours: list[Clocks]) -> float:
    """What a replay takes beside the kernel, by processes that run our own code."""
    return median([clocks.slope_us - clocks.reported_us for clocks in ours])


def unreported_us(candidate: Clocks, ours: list[Clocks]) -> float:
    """What a replay takes beyond what is reported and what is done before it; 0 where that is within the slack.

    The slack grows with how far our own processes are apart: where the host is busy the judge's clock says less.
    """
    missing = candidate.slope_us - overhead_us(ours) - candidate.reported_us
    beside = [clocks.slope_us - clocks.reported_us for clocks in ours]
    slack = _SLACK_US + _SLACK_SHARE * candidate.reported_us + 2 * (max(beside) - min(beside))
    return missing if missing > slack else 0.0
