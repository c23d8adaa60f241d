"""Sittings: what counts is timed again by other processes, on other memory, and all of it is one measurement.

What one process takes differs from what the next one does, for as long as they live: where its buffers, its code and
the tables of its memory lie is drawn once. On an H200 that is 0.6 % of 10 to 14 us (one standard deviation) and 0.3 %
of 22 to 70 us. Rounds within a process cannot tell. No torch, no process.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.judge.timing import statistics
from orchestrator.measured import ShapeTimings, Timing


def again(timings: ShapeTimings, launch_us: float) -> bool:
    """Whether a shape is to be timed in further sittings: its kernel is more than a launch."""
    return not statistics.launch_bound(statistics.latency_us(timings.candidate.latencies_us), launch_us)


def joined(first: ShapeTimings, later: ShapeTimings) -> ShapeTimings:
    """Both as one, of whoever took part in both; a baseline that was lost later is absent, and why."""
    theirs = {one.name: one for one in later.baselines}
    baselines = [_together(one, theirs[one.name]) for one in first.baselines if one.name in theirs]
    whole_twin = bool(first.twin and later.twin) and first.twin_of == later.twin_of and first.twin_of in theirs
    return replace(
        first,
        candidate=_together(first.candidate, later.candidate),
        baselines=tuple(baselines),
        twin=first.twin + later.twin if whole_twin else (),
        twin_of=first.twin_of if whole_twin else "",
        absent={**later.absent, **first.absent},
        sittings=first.sittings + later.sittings,
    )


def _together(first: Timing, later: Timing) -> Timing:
    """What stands beside the latencies is the first sitting's; without a graph in one of them there is none in both."""
    graph = first.graph and later.graph
    return replace(
        first, latencies_us=first.latencies_us + later.latencies_us, graph=graph, detail=first.detail or later.detail
    )
