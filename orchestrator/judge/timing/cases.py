"""The cases of a measurement, made by the committed test file, and what they need of memory."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.candidate import ZONE
from orchestrator.judge.memory import form_of, slots
from orchestrator.judge.results import several
from orchestrator.measured import MeasureJob


def of(test: ModuleType, job: MeasureJob) -> tuple[list[Any], list[Any]]:
    """Those that decide, every shape with every dtype, and those of the curve."""
    dims = [dict(zip(job.dims, shape, strict=True)) for shape in job.shapes]
    curve = [dict(zip(job.dims, shape, strict=True)) for shape in job.curve]
    cases = [test.Case(one, dtype) for one in dims for dtype in job.dtypes]
    return cases, [test.Case(one, job.curve_dtype) for one in curve]


def name(case: Any) -> str:
    """The shape and dtype as a reader has it."""
    return f"{'x'.join(map(str, case.dims.values()))} {case.dtype}"


def buffer_bytes(test: ModuleType, cases: Sequence[Any], seed: int) -> tuple[int, int]:
    """What the largest shape needs for its inputs and for its results."""
    into = out = 0
    for case in cases:
        inputs = test.make_inputs(case, "cuda", seed)
        _, want = test.run(inputs, case.parameters)
        results = several(want)
        into = max(into, slots([form_of(tensor) for tensor in inputs.values()], ZONE)[1])
        out = max(out, slots([form_of(tensor) for tensor in results])[1])
    torch.cuda.empty_cache()
    return into, out
