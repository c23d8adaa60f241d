"""Compiling ahead of the sweep, in other processes of the same candidate.

On a GPU most of a verdict is Triton compiling one specialization after the other in one process. Scouts are more
confined processes of the same file over the same scratch folder, and so the same Triton cache: each calls the entry,
with launches muted, on uninitialised tensors of some of the cases' shapes. Nothing they say is heard: no verdict rests
on a scout, and a candidate whose scouts fail is only slower. Owns their threads and their end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import JudgeError
from orchestrator.judge.candidate import Candidate, CandidateFailed

_MOST = 6

Start = Callable[[Path], Candidate]
Form = tuple[tuple[int, ...], tuple[int, ...], str]  # shape, strides, dtype


@dataclass(frozen=True)
class Shapes:
    """The arguments of one call as far as compiling depends on them."""

    inputs: Mapping[str, Form]  # by name
    parameters: Mapping[str, Any]

    @property
    def key(self) -> tuple[object, ...]:
        """Calls with equal keys compile the same."""
        return tuple(sorted(self.inputs.items())), tuple(sorted(self.parameters.items()))


def count(judges: int) -> int:
    """How many one of so many judges may have: each has a candidate itself, and needs a core too."""
    return max(0, min(_MOST, (os.cpu_count() or 1) // judges // 2 - 1))


class _Scout:
    def __init__(self, start: Start, kernel: Path, share: Sequence[Shapes]) -> None:
        self._start, self._kernel, self._share = start, kernel, share
        self._candidate: Candidate | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scout", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._candidate = candidate = self._start(self._kernel)
            candidate.load()
            for shapes in self._share:
                if self._ended.is_set() or not candidate.alive:
                    break
                self._warm(candidate, shapes)
        except (CandidateFailed, JudgeError):
            return  # the sweep will meet the same, and is heard
        finally:
            if self._candidate is not None:
                self._candidate.end()

    def _warm(self, candidate: Candidate, shapes: Shapes) -> None:
        try:
            candidate.warm(shapes.inputs, shapes.parameters)
        except CandidateFailed:
            return

    def stop(self) -> None:
        """Kill its process, which makes its thread end; the thread alone speaks with its warden."""
        self._ended.set()
        if self._candidate is not None:
            self._candidate.interrupt()

    def join(self) -> None:
        """Wait for its thread."""
        self._thread.join()


@contextmanager
def ahead(starts: Sequence[Start], kernel: Path, calls: Sequence[Shapes]) -> Iterator[None]:
    """Scouts at work on these calls, each kind once, in their order, for as long as the context lasts."""
    kinds = list({call.key: call for call in calls}.values())
    used = starts[: len(kinds)]
    scouts = [_Scout(start, kernel, kinds[index :: len(used)]) for index, start in enumerate(used)]
    try:
        yield
    finally:
        for scout in scouts:  # all of them, before any is waited for: a process on a GPU takes a while to end
            scout.stop()
        for scout in scouts:
            scout.join()
