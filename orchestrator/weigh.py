"""From what was measured to what is decided by: a pure function of the record, so that it can be made again from it.

Which shapes count: those whose time is more than a launch's. Where the kernel takes little longer than a kernel that
does nothing, what a caller waits for is the launch, and a difference there says nothing about the kernel: such shapes
are reported and left out. Against what: the fastest baseline of each shape. A time that beats the ceiling is a fault
of the measurement or a cheat, and then there is no measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.judge.timing import statistics
from orchestrator.judge.timing.statistics import Apart, Interval, Rounds, latency_us
from orchestrator.measured import BEST, Measured, ShapeTimings, Timing
from orchestrator.records import Measurement

_BEATS = 1.10  # times as fast as the ceiling: a copy by torch is not the best there can be, but nearly
_BEATS_SHORT = 1.30  # where few bytes move: what a copy takes to start counts too, and results may stay in the cache
_LARGE_BYTES = 100 << 20  # from here on a kernel has what it takes to reach the ceiling


@dataclass(frozen=True)
class Row:
    """One shape and dtype, as a reader sees it."""

    name: str
    latency_us: float
    by_process: tuple[float, ...]  # of each process of the kernel's, one a sitting
    call_us: float | None
    gbps: float
    tflops: float
    ceiling_share: float  # above 1 within what is allowed for a copy that is not the best
    speedups: dict[str, Interval]  # over each baseline
    best: str  # the fastest of them
    launch_bound: bool
    graph: bool
    notes: tuple[str, ...]

    @property
    def speedup(self) -> Interval:
        """Over the fastest baseline."""
        return self.speedups[self.best]


def rows(measured: Measured) -> tuple[Row, ...]:
    """Every shape that was timed to decide by."""
    return tuple(_rows(measured, [shape for shape in measured.shapes if not shape.curve]))


def curve(measured: Measured) -> tuple[Row, ...]:
    """Every shape that was timed to be shown."""
    return tuple(_rows(measured, [shape for shape in measured.shapes if shape.curve]))


def fault(measured: Measured) -> str:
    """Why this is no measurement, in words; "" where it is one."""
    if not rows(measured):
        return "nothing was timed"
    if not _against_itself(measured):
        return "no baseline could be timed against itself, so the machine's noise is unknown"
    beating = [shape for shape in measured.shapes if _beats(shape, measured.launch_us)]
    if beating:
        first, us = beating[0], latency_us(beating[0].candidate.latencies_us)
        return (
            f"{first.name} took {us:.2f} us, {first.least_us / us:.2f} times as fast as this card can move its bytes: "
            "a fault of the measurement or a cheat, and a person has to see which"
        )
    return ""


def weigh(measured: Measured, *, rungs_left: int, outside: Collection[str] = ()) -> Measurement:
    """What is decided by; shapes named in `outside` are not. ValueError where `fault` names a fault."""
    if reason := fault(measured):
        raise ValueError(reason)
    left_out = _rows(measured, [shape for shape in counting(measured) if shape.name in outside])
    deciding = [shape for shape in counting(measured) if shape.name not in outside]
    every = _rows(measured, deciding)
    slowest = min(every, key=lambda row: row.speedup.middle)
    total = statistics.geomean_speedup([_rounds(shape, _deciding(shape)) for shape in deciding], _apart(measured))
    return Measurement(
        baseline=_named(every),
        speedup_low=total.low,
        speedup_high=total.high,
        slowest_shape=slowest.name,
        slowest_speedup=slowest.speedup.middle,
        roofline_share=min(1.0, _share(deciding, every)),
        noise=max(abs(ratio - 1) for ratio in _against_itself(measured)),
        rungs_left=rungs_left,
        noise_overall=noise(measured),
        excluded_shapes=tuple(f"{row.name}, at {row.speedup.middle:.3f} times {row.best}" for row in left_out),
    )


def within(measured: Measured, least: float, most: float, *, rungs_left: int) -> Measurement | None:
    """What is decided by with the shapes whose speedup is below `least` put outside the kernel's envelope.

    None where that is no shape, or more than `most` of those that count: the rest would be another claim.
    """
    every = _rows(measured, counting(measured))
    slower = [row.name for row in every if row.speedup.middle < least]
    if not 0 < len(slower) <= most * len(every):
        return None
    return weigh(measured, rungs_left=rungs_left, outside=slower)


def noise(measured: Measured) -> float:
    """By how much the geometric mean of a baseline over itself in another process is off 1; 0 where that is unknown."""
    ratios = _against_itself(measured)
    return abs(statistics.geomean(ratios) - 1) if ratios else 0.0


def over_baseline(measured: Measured, name: str, among: Collection[str] | None = None) -> Interval | None:
    """The geometric mean over one baseline, of the shapes that count and have it (of those, if some are named)."""
    pairs = [
        _rounds(shape, [one])
        for shape in counting(measured)
        for one in shape.baselines
        if one.name == name and (among is None or shape.name in among)
    ]
    return statistics.geomean_speedup(pairs, _apart(measured)) if pairs else None


def baselines(measured: Measured) -> tuple[str, ...]:
    """The names of all that were timed."""
    return tuple(dict.fromkeys(one.name for shape in measured.shapes for one in shape.baselines))


def beats_the_best(measured: Measured, margin_floor: float) -> bool:
    """Whether the candidate is faster than the run's best kernel so far, beyond the noise."""
    over = over_baseline(measured, BEST)
    return over is not None and over.low >= 1 + max(noise(measured), margin_floor)


def _rounds(shape: ShapeTimings, against: Sequence[Timing]) -> Rounds:
    return Rounds(shape.candidate.latencies_us, tuple(one.latencies_us for one in against), shape.sittings)


def over_the_best(measured: Measured) -> str:
    """How the candidate stands to the run's best kernel so far, in words: on the whole, and where it is the slowest and
    the fastest; "" where that was not timed."""
    over, ratios = over_baseline(measured, BEST), {}
    for shape in counting(measured):
        for one in shape.baselines:
            if one.name == BEST:
                ratios[shape.name] = latency_us(one.latencies_us) / latency_us(shape.candidate.latencies_us)
    if over is None:
        return ""
    slowest, fastest = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    where = (
        f", from {ratios[slowest]:.2f} at {slowest} to {ratios[fastest]:.2f} at {fastest}" if len(ratios) > 1 else ""
    )
    return f"{over.middle:.2f} times its speed{where}"


def _deciding(shape: ShapeTimings) -> tuple[Timing, ...]:
    """What the decision is against: everything but an earlier kernel of the same run."""
    return tuple(one for one in shape.baselines if one.name != BEST)


def counting(measured: Measured) -> list[ShapeTimings]:
    """The shapes that count; all of them where every one is bound by its launch."""
    deciding = [shape for shape in measured.shapes if not shape.curve]
    return [shape for shape in deciding if not _launch_bound(shape, measured.launch_us)] or deciding


def _launch_bound(shape: ShapeTimings, launch_us: float) -> bool:
    return statistics.launch_bound(latency_us(shape.candidate.latencies_us), launch_us)


def _apart(measured: Measured) -> Apart:
    """How far processes are apart, by all that was timed."""
    return statistics.apart([_rounds(shape, _deciding(shape)) for shape in measured.shapes])


def _rows(measured: Measured, shapes: Sequence[ShapeTimings]) -> list[Row]:
    processes = _apart(measured)
    return [_row(shape, measured.launch_us, processes) for shape in shapes]


def _row(shape: ShapeTimings, launch_us: float, processes: Apart) -> Row:
    us, deciding = latency_us(shape.candidate.latencies_us), _deciding(shape)
    return Row(
        name=shape.name,
        latency_us=us,
        by_process=tuple(statistics.by_sitting(shape.candidate.latencies_us, shape.sittings)),
        call_us=shape.candidate.call_us,
        gbps=shape.bytes / us / 1e3,
        tflops=shape.flops / us / 1e6,
        ceiling_share=shape.ideal_us / us,
        speedups={one.name: statistics.speedup(_rounds(shape, [one]), processes) for one in deciding},
        best=statistics.fastest({one.name: one.latencies_us for one in deciding}),
        launch_bound=_launch_bound(shape, launch_us),
        graph=shape.candidate.graph,
        notes=_notes(shape),
    )


def _notes(shape: ShapeTimings) -> tuple[str, ...]:
    timed: tuple[Timing, ...] = (shape.candidate, *shape.baselines)
    return tuple(f"{one.name}: {one.detail}" for one in timed if one.detail)


def _beats(shape: ShapeTimings, launch_us: float) -> bool:
    """Whether it is too fast to be true. A launch-bound time is its launch's, which the ceiling does not know."""
    share = shape.least_us / latency_us(shape.candidate.latencies_us)
    return not _launch_bound(shape, launch_us) and share > (_BEATS if shape.bytes >= _LARGE_BYTES else _BEATS_SHORT)


def _share(counting: Sequence[ShapeTimings], every: Sequence[Row]) -> float:
    """The lowest share of the ceiling, of the shapes large enough to reach it if there are such."""
    large = [row.ceiling_share for shape, row in zip(counting, every, strict=True) if shape.bytes >= _LARGE_BYTES]
    return min(large or [row.ceiling_share for row in every])


def _against_itself(measured: Measured) -> list[float]:
    """A baseline's time over its own in another process, at each shape that counts, or else at any."""
    for shapes in (counting(measured), measured.shapes):
        if ratios := [ratio for shape in shapes if (ratio := _of_the_twin(shape)) is not None]:
            return ratios
    return []


def _of_the_twin(shape: ShapeTimings) -> float | None:
    one = next((timing for timing in shape.baselines if timing.name == shape.twin_of), None)
    return None if one is None or not shape.twin else latency_us(shape.twin) / latency_us(one.latencies_us)


def _named(every: Sequence[Row]) -> str:
    """The fastest baseline where it is the same everywhere, else that it is each shape's own."""
    counted = Counter(row.best for row in every).most_common()
    if len(counted) == 1:
        return counted[0][0]
    parts = ", ".join(f"{name} at {count}" for name, count in counted)
    return f"the fastest baseline of each shape ({parts})"
