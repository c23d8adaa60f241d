"""The cases whose offsets pass 2^31 elements: whether this machine has room for them, and their comparison in parts.

Owns the memory that only they need, for which the judges of one card wait, and how the figures of parts become those of
a case. The kernel is called once, on the whole; the reference and the comparison take a part of one dim at a time,
along which the op says that its results do not depend on each other (`ops check` tries it). Nothing else is looser:
every element is compared.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from filelock import FileLock, Timeout

from orchestrator.judge.candidate import ZONE
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.compare import compared
from orchestrator.judge.memory import Arena, DeviceArena, form_of, slots
from orchestrator.judge.results import several
from orchestrator.records import Status

# Of GPU memory for each element, in half precision: two inputs, their copies, two buffers, the result, its copy and
# masks over the bytes take 24; the comparison of a part, and what a kernel holds besides, the rest.
_PEAK_BYTES = 32
_TURN_S = 600  # for another judge's large case to end; one takes seconds
_FREE_S = 60  # for memory that somebody else is giving back
_KEPT_ELEMENTS = 1 << 24  # of a case after which torch may keep the memory it took, though others share the card


class Room:
    """The card's memory for one large case. The judges of a card take turns: it does not hold the cases of two."""

    def __init__(self, judges: int) -> None:
        self._shared = judges > 1
        card = str(torch.cuda.get_device_properties(0).uuid)
        self._turn = FileLock(Path(tempfile.gettempdir()) / f"orchestrator-{os.getuid()}-large-{card}.lock")
        self._buffers: list[DeviceArena] = []

    def tidy(self, case: Any) -> None:
        """Give back what torch keeps after a case, where other judges may want it."""
        if self._shared and math.prod(case.dims.values()) > _KEPT_ELEMENTS:
            torch.cuda.empty_cache()

    def take(self, case: Any) -> str:
        """Wait for a turn, and for the memory; why there is none, or "". No process of the candidate's may live: what
        one keeps would leave out the case."""
        torch.cuda.empty_cache()  # before the turn: whoever has it needs what waiting judges keep for later
        try:
            self._turn.acquire(timeout=_TURN_S)
        except Timeout:
            return f"other judges took the card's memory for {_TURN_S} s"
        waited = time.monotonic() + _FREE_S
        while (free := torch.cuda.mem_get_info()[0]) < bytes_needed(case):
            if time.monotonic() > waited:
                return f"{free / 1e9:.0f} GB free"
            time.sleep(0.1)
        return ""

    def buffers(self, inputs: Mapping[str, torch.Tensor]) -> tuple[Arena, Arena]:
        """Two that these inputs fit into, and results no larger; beside what torch holds."""
        _, nbytes = slots([form_of(tensor) for tensor in inputs.values()], ZONE)
        pair = DeviceArena(nbytes), DeviceArena(nbytes)
        self._buffers += pair
        return pair

    def leave(self) -> None:
        """Give the memory back, then the turn. The candidate must have ended, and no tensor may lie in the buffers."""
        while self._buffers:
            self._buffers.pop().close()
        if self._turn.is_locked:
            torch.cuda.empty_cache()
            self._turn.release()


def cases(test: ModuleType, quick: bool) -> list[Any]:
    """Those that this sweep asks."""
    return list(test.large()) if not quick and hasattr(test, "large") else []


def is_large(case: Any) -> bool:
    """Whether it is one of them."""
    return getattr(case, "large", False) is True


def left_out(case: Any, why: str) -> str:
    """The note on a case that this machine cannot hold."""
    return f"left out: {case.name}, which takes {bytes_needed(case) / 1e9:.0f} GB on a GPU ({why})"


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


def bytes_needed(case: Any) -> int:
    """Of GPU memory, at most, while it is judged."""
    return int(_PEAK_BYTES * math.prod(case.dims.values()))
