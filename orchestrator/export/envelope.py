"""Where a kernel was verified: the sizes, dtypes, parameters and the device of the cases that passed. Pure.

Each dim and each parameter has its range by itself; that a size between two that passed is right too is what the
held-out cases, drawn from between, are for. Values of inputs are no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator import arithmetic
from orchestrator.measured import Measured
from orchestrator.ops.spec import OpSpec
from orchestrator.records import Parameter, Record, Report

INTERPRETER = "cpu"  # as a device: Triton's interpreter
ELEMENTS = 2**31 - 1  # of one tensor: offsets of 32 bits end there; further only where a case reached further


@dataclass(frozen=True)
class Sizes(Record):
    """From the first to the last, in steps."""

    low: int
    high: int
    step: int = 1


@dataclass(frozen=True)
class Envelope(Record):
    """Outside of it nothing was compared."""

    dims: dict[str, Sizes]
    dtypes: tuple[str, ...]
    parameters: dict[str, tuple[Parameter, ...]]  # numbers: the least and the greatest; others: each
    device: str  # the GPU's name, or INTERPRETER
    elements: int = ELEMENTS


def of(spec: OpSpec, report: Report, measured: Measured | None) -> Envelope:
    """The envelope of a verdict that passed, and of the shapes that were compared while it was timed."""
    cases = [(case.dims, case.dtype) for case in report.cases]
    cases += [(shape.dims, shape.dtype) for shape in (measured.shapes if measured else ())]
    seen = {dtype for _, dtype in cases}
    return Envelope(
        dims={dim: _sizes(spec, dim, {dims[dim] for dims, _ in cases}) for dim in spec.dims},
        dtypes=tuple(dtype for dtype in spec.sweep.dtypes if dtype in seen),
        parameters={
            name: _values(case.parameters.get(name, default) for case in report.cases)
            for name, default in spec.parameters.items()
        },
        device=INTERPRETER if report.interpreted else report.device,
        elements=max([ELEMENTS, *(_elements(spec, dims) for dims, _ in cases)]),
    )


def _elements(spec: OpSpec, dims: dict[str, int]) -> int:
    """Of the largest input at these sizes."""
    return max(math.prod(arithmetic.value(size, dims) for size in one.shape) for one in spec.inputs.values())


def _sizes(spec: OpSpec, dim: str, sizes: set[int]) -> Sizes:
    """The step is that of the held-out sizes, where all that passed keep it."""
    low, step = min(sizes), (*spec.sweep.holdout.ranges.get(dim, ()), 1, 1, 1)[2]
    return Sizes(low, max(sizes), step if all((size - low) % step == 0 for size in sizes) else 1)


def _values(values: Iterable[Parameter]) -> tuple[Parameter, ...]:
    every = tuple(dict.fromkeys(values))
    numbers = [value for value in every if isinstance(value, int | float) and not isinstance(value, bool)]
    return (min(numbers), max(numbers)) if len(numbers) == len(every) else every
