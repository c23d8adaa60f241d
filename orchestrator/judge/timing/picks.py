"""torch.compile's pick among its own configurations, by the clock that everything here is timed by.

Inductor tries a few block sizes and takes the fastest by a short look of its own, launches included. On an H200 it took
one or the other of two that are 2 to 6 % apart, by chance, so that a reference compiled again was another baseline.
Here each is timed as a contender is, in captured replays with a cold cache, small data at several places in memory: as
strong a baseline as its configurations allow. What it refuses, it refuses. These are Inductor's own
objects (2.11 to 2.13); where one cannot be timed so, its own looks decide from there on, as they do for a user.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from orchestrator.judge.memory import ALIGNMENT, copy_of
from orchestrator.judge.timing.clock import Clock, capture
from orchestrator.judge.timing.statistics import latency_us, median

_PLACES, _REPLAYS = 12, 6
_MOST_PAD, _SEED = 2 << 20, 7
_PLACES_BYTES = 512 << 20
_REFUSED = float("inf")


def by_clock(clock: Callable[[], Clock]) -> None:
    """From now on, in this process. `clock` is called when there is something to time."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    look: Callable[..., float] = CachingAutotuner.bench
    lost = False

    def bench(self: Any, launcher: Any, *args: Any, **kwargs: Any) -> float:
        nonlocal lost
        milliseconds = look(self, launcher, *args, **kwargs)
        if milliseconds == _REFUSED or lost:
            return milliseconds
        try:
            return _timed(clock(), self, launcher, args, kwargs)
        except Exception:  # noqa: BLE001 - another version's objects, or a launch that cannot be captured
            lost = True
            return milliseconds

    CachingAutotuner.bench = bench


def _timed(clock: Clock, tuner: Any, launcher: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Milliseconds of one launch, over several places where its data are small; what it writes in place is a copy."""
    given, named = tuner.clone_args(*args, **kwargs)
    nbytes = sum(one.untyped_storage().nbytes() for one in given if isinstance(one, torch.Tensor))
    more = min(_PLACES, _PLACES_BYTES // max(1, nbytes)) - 1
    draw = random.Random(_SEED)  # the same places for each configuration
    places = [given, *(_elsewhere(given, draw) for _ in range(more))]

    def launch(copies: list[Any]) -> None:
        launcher(*copies, **named, stream=torch.cuda.current_stream().cuda_stream)

    graphs = [capture(partial(launch, copies))[0] for copies in places]
    return latency_us([median(clock.block(graph.replay, _REPLAYS)) for graph in graphs]) / 1e3


def _elsewhere(given: list[Any], draw: random.Random) -> list[Any]:
    return [_shifted(one, draw) if isinstance(one, torch.Tensor) else one for one in given]


def _shifted(tensor: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """A copy that begins somewhere within what the allocator gives, which begins alike each time."""
    if not tensor.is_contiguous():
        return copy_of(tensor)
    pad = draw.randrange(_MOST_PAD // ALIGNMENT) * ALIGNMENT
    room = torch.empty(pad + tensor.nbytes, dtype=torch.uint8, device=tensor.device)
    return room[pad:].view(tensor.dtype).view(tensor.shape).copy_(tensor)
