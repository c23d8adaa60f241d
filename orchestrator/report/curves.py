"""A measurement as plots: latency and bandwidth as one dim grows, against every baseline and the ceiling; the roofline.

Which shapes make a curve: those of one dtype in which one dim grows and either the others stay or the size as a whole
does. Of each dim and dtype the longest such row is shown; the table of all shapes has the rest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from orchestrator.judge.timing.statistics import latency_us
from orchestrator.measured import Measured, ShapeTimings
from orchestrator.report.figures import Axis, Figure, Kind, Point, Series

KERNEL, CEILING = "this kernel", "ceiling"
_SHORTEST = 3  # shapes that make a curve


@dataclass(frozen=True)
class Sweep:
    """Shapes of one dtype in which one dim grows."""

    dim: str
    dtype: str
    stays: str  # what stays the same meanwhile, in words
    shapes: tuple[ShapeTimings, ...]

    @property
    def title(self) -> str:
        """Which shapes these are."""
        return f"over {self.dim}, {self.dtype}" + (f", {self.stays}" if self.stays else "")


def sweeps(measured: Measured) -> tuple[Sweep, ...]:
    """The longest row of shapes for each dim and dtype, the longest of them all first."""
    found: dict[tuple[str, str], Sweep] = {}
    for sweep in _every_sweep(measured.shapes):
        best = found.get((sweep.dim, sweep.dtype))
        if len(sweep.shapes) >= _SHORTEST and (best is None or len(sweep.shapes) > len(best.shapes)):
            found[sweep.dim, sweep.dtype] = sweep
    return tuple(sorted(found.values(), key=lambda sweep: -len(sweep.shapes)))


def latency(sweep: Sweep) -> Figure:
    """Microseconds, lower is better."""
    return _figure(sweep, "latency", "Latency", "microseconds", "Lower is better.", lambda shape, us: us)


def bandwidth(sweep: Sweep) -> Figure:
    """The bytes that the op has to move, by the time taken."""
    about = "Higher is better: the bytes that the op has to move at least, over the time it took."
    return _figure(sweep, "bandwidth", "Bandwidth", "GB/s", about, lambda shape, us: shape.bytes / us / 1e3)


def roofline(measured: Measured) -> Figure | None:
    """Arithmetic over bytes moved, and what the card allows there; None for an op that counts no arithmetic."""
    shapes = [shape for shape in measured.shapes if shape.flops and shape.bytes]
    if not shapes or not measured.copy_gbps:
        return None
    dtypes = list(dict.fromkeys(shape.dtype for shape in shapes))
    points = [
        Series(
            f"{KERNEL}, {dtype}",
            Kind.POINTS,
            tuple(Point(_intensity(one), _tflops(one), _size(one)) for one in shapes if one.dtype == dtype),
        )
        for dtype in dtypes
    ]
    intensities = sorted(map(_intensity, shapes))
    roofs = _roofs(measured, intensities[0] / 2, intensities[-1] * 2)
    about = "A point on the slope is bound by memory, one under a flat roof by arithmetic; on the line nothing is left."
    return Figure(
        *("roofline", "Roofline", about),
        Axis("floating-point operations per byte"),
        Axis("TFLOP/s"),
        (*points, *roofs),
    )


def _roofs(measured: Measured, low: float, high: float) -> list[Series]:
    """The slope of the copy ceiling, and the flat roof of each dtype whose multiplying was measured."""
    slope, flat = measured.copy_gbps / 1e3, measured.matmul_tflops
    ridge = max(high, *(tflops / slope for tflops in flat.values())) if flat else high
    memory = Series(
        f"copying, {measured.copy_gbps:.0f} GB/s", Kind.CEILING, _line((low, low * slope), (ridge, ridge * slope))
    )
    return [
        memory,
        *(
            Series(
                f"multiplying {dtype}, {tflops:.0f} TFLOP/s", Kind.CEILING, _line((low, tflops), (ridge * 2, tflops))
            )
            for dtype, tflops in flat.items()
        ),
    ]


def _line(*ends: tuple[float, float]) -> tuple[Point, ...]:
    return tuple(Point(x, y, "end of the line") for x, y in ends)


def _every_sweep(shapes: Sequence[ShapeTimings]) -> list[Sweep]:
    rows: defaultdict[tuple[str, str, str], list[ShapeTimings]] = defaultdict(list)
    for shape in shapes:
        for dim in shape.dims:
            others = [f"{name} = {size}" for name, size in shape.dims.items() if name != dim]
            rows[dim, shape.dtype, ", ".join(others)].append(shape)
            if others:
                whole = " × ".join(shape.dims)
                rows[dim, shape.dtype, f"{whole} = {math.prod(shape.dims.values()):,}"].append(shape)
    return [
        Sweep(dim, dtype, stays, tuple(sorted(row, key=lambda shape: shape.dims[dim])))
        for (dim, dtype, stays), row in rows.items()
    ]


def _figure(
    sweep: Sweep, key: str, title: str, unit: str, about: str, value: Callable[[ShapeTimings, float], float]
) -> Figure:
    names = list(dict.fromkeys(one.name for shape in sweep.shapes for one in shape.baselines))

    def series(name: str, kind: Kind, us: Callable[[ShapeTimings], float | None]) -> Series:
        points = [(shape.dims[sweep.dim], us(shape), shape) for shape in sweep.shapes]
        return Series(
            name, kind, tuple(Point(x, value(shape, y), _size(shape)) for x, y, shape in points if y is not None)
        )

    return Figure(
        *(f"{key}-{sweep.dim}-{sweep.dtype}", f"{title} {sweep.title}", about),
        Axis(sweep.dim),
        Axis(unit),
        (
            series(KERNEL, Kind.KERNEL, lambda shape: latency_us(shape.candidate.latencies_us)),
            *(series(name, Kind.BASELINE, partial(_baseline_us, name=name)) for name in names),
            series(CEILING, Kind.CEILING, lambda shape: shape.ideal_us),
        ),
    )


def _baseline_us(shape: ShapeTimings, name: str) -> float | None:
    timing = next((one for one in shape.baselines if one.name == name), None)
    return None if timing is None else latency_us(timing.latencies_us)


def _size(shape: ShapeTimings) -> str:
    return " × ".join(map(str, shape.dims.values()))


def _intensity(shape: ShapeTimings) -> float:
    return shape.flops / shape.bytes


def _tflops(shape: ShapeTimings) -> float:
    return shape.flops / latency_us(shape.candidate.latencies_us) / 1e6
