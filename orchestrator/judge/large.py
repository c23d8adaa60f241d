"""The cases whose offsets pass 2^31 elements: whether this machine has room for them, and their comparison in parts.

Owns the buffers that only they need and how the figures of parts become those of a case. The kernel is called once, on
the whole; the reference and the comparison take a part of one dim at a time, along which the op says that its results
do not depend on each other (`ops check` tries it). Nothing else is looser: every element is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.compare import compared
from orchestrator.judge.memory import Arena, DeviceArena
from orchestrator.judge.results import several
from orchestrator.records import Status

Room = Callable[[int], tuple[Arena, Arena]]
# Of GPU memory for each element: inputs in float32 while they are made, copies, two buffers, the result.
_PEAK_BYTES = 40


def cases(test: ModuleType, quick: bool, room: Room | None, notes: list[str]) -> list[Any]:
    """Those that this sweep asks and this machine can hold; a note says which are left out."""
    every = test.large() if not quick and hasattr(test, "large") else []
    fit = [case for case in every if room is not None and _bytes_needed(case) <= torch.cuda.mem_get_info()[0]]
    for case in every:
        if case not in fit:
            have = "no GPU" if room is None else f"{torch.cuda.mem_get_info()[0] / 1e9:.0f} GB free"
            notes.append(f"left out: {case.name}, which takes {_bytes_needed(case) / 1e9:.0f} GB on a GPU ({have})")
    return fit


def is_large(case: Any) -> bool:
    """Whether it is one of them."""
    return getattr(case, "large", False) is True


def room(nbytes: int) -> tuple[Arena, Arena]:
    """Two buffers of that size, beside what torch holds."""
    torch.cuda.empty_cache()
    return DeviceArena(nbytes), DeviceArena(nbytes)


def figures(test: ModuleType, case: Any, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The figures of the whole case. Raises CandidateFailed for a result of another shape or dtype."""
    found: list[tuple[int, dict[str, Any]]] = []
    for first, count, got, want, exact in test.run_in_parts(case, inputs):
        if not found:
            as_promised(got, _whole(test, case, want))
        found.append((first, compared(test, case, test.part_of(got, first, count), want, exact)))
    return _together(test, case, found)


def _whole(test: ModuleType, case: Any, want: Any) -> Any:
    """Results of the shapes of all parts together, without memory."""
    wanted = several(want)
    shapes = [list(one.shape) for one in wanted]
    for shape, axis in zip(shapes, test.RESULTS_ALONG, strict=True):
        shape[axis] = case.dims[test.ALONG]
    made = [torch.empty(shape, dtype=one.dtype, device="meta") for shape, one in zip(shapes, wanted, strict=True)]
    return tuple(made) if isinstance(want, tuple) else made[0]


def _together(test: ModuleType, case: Any, found: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """The part that fails first, or the worst; with all elements counted and the places those of the whole."""
    failed = [entry for entry in found if entry[1]["status"] is not Status.PASSED]
    first, worst = failed[0] if failed else max(found, key=lambda entry: entry[1]["tolerance_ratio"])
    whole = dict(worst)
    for name in ("wrong", "elements"):
        whole[name] = sum(part[name] for _, part in found)
    for name in ("max_abs", "max_rel", "tolerance_ratio", "precision"):
        whole[name] = max(part[name] for _, part in found)
    if failed:
        where = f"{len(failed)} of {len(found)} parts of {test.ALONG} fail, the first from {test.ALONG} {first} on"
        whole["detail"] = ". ".join(filter(None, [worst.get("detail", ""), where]))
        axis = test.RESULTS_ALONG[0]
        whole["first_wrong"] = tuple(_moved(one, axis, first) for one in worst.get("first_wrong", ()))
        whole["wrong_in"] = ""
    return whole


def _moved(element: Any, axis: int, by: int) -> Any:
    index = tuple(at + by if number == axis else at for number, at in enumerate(element.index))
    return replace(element, index=index)


def _bytes_needed(case: Any) -> int:
    return int(_PEAK_BYTES * math.prod(case.dims.values()))
