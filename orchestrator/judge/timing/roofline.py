"""What the card can do at most, measured by the judge itself, once per session: copying, multiplying, launching.

A kernel must move its bytes, so it cannot be much faster than a copy of as many; a kernel that multiplies must
multiply. A time that beats both is a fault of the measurement or a cheat. The copy is timed at many sizes and the time
between them interpolated: what a short kernel can reach is not what a long one can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from orchestrator.judge.memory import torch_dtype
from orchestrator.judge.timing.clock import Clock, capture
from orchestrator.judge.timing.statistics import latency_us, median

_SIZES = tuple(1 << power for power in range(14, 31))  # bytes moved: read and written
_REPLAYS = 15
_PLACES, _PLACES_BYTES = 8, 128 << 20
_MATMUL = 8192
COMPUTE_BOUND = 20  # flops a byte, from which on multiplying may be what takes the time


@dataclass(frozen=True)
class Copies:
    """How long copies take, by the bytes that they move."""

    sizes: tuple[int, ...]
    times_us: tuple[float, ...]

    @property
    def best_gbps(self) -> float:
        """The highest bandwidth over all sizes."""
        return max(size / us / 1e3 for size, us in zip(self.sizes, self.times_us, strict=True))

    def us(self, nbytes: int) -> float:
        """The time of a copy that moves so many bytes."""
        if nbytes > self.sizes[-1]:
            return self.times_us[-1] * nbytes / self.sizes[-1]
        return float(np.interp(nbytes, self.sizes, self.times_us))


class Roofline:
    """The ceilings of the current GPU, each measured when it is first asked for."""

    def __init__(self) -> None:
        self._clock: Clock | None = None
        self._launch_us = 0.0
        self._copies: Copies | None = None
        self.matmul_tflops: dict[str, float] = {}

    @property
    def launch_us(self) -> float:
        """What the smallest of kernels takes: no time is below it."""
        if not self._launch_us:
            one = torch.empty(1, device="cuda")
            self._launch_us = self._time(lambda: one.fill_(0))
        return self._launch_us

    @property
    def copies(self) -> Copies:
        """The copy ceiling."""
        if self._copies is None:
            self._copies = Copies(_SIZES, tuple(self._copy_us(size // 2) for size in _SIZES))
            torch.cuda.empty_cache()
        return self._copies

    def ideal_us(self, nbytes: int, flops: int, dtype: str) -> float:
        """The least time for so many bytes and floating-point operations."""
        moving = self.copies.us(nbytes)
        if flops < COMPUTE_BOUND * nbytes:
            return moving
        return max(moving, flops / self._matmul(dtype) / 1e6)

    def _copy_us(self, nbytes: int) -> float:
        """The better of the driver's copy and a kernel that reads and writes; small data at several places."""
        count = max(1, min(_PLACES, _PLACES_BYTES // nbytes))
        empty = partial(torch.zeros, nbytes // 4, dtype=torch.int32, device="cuda")
        places = [(empty(), empty()) for _ in range(count)]
        ways: tuple[Callable[[torch.Tensor, torch.Tensor], object], ...] = (
            lambda source, target: target.copy_(source),
            lambda source, target: torch.bitwise_not(source, out=target),
        )
        return min(latency_us([self._time(partial(way, *place)) for place in places]) for way in ways)

    def _matmul(self, dtype: str) -> float:
        """TFLOP/s; float32 in TF32, which a kernel may use too."""
        if dtype not in self.matmul_tflops:
            left = torch.randn(_MATMUL, _MATMUL, device="cuda").to(torch_dtype(dtype))
            out = torch.empty_like(left)
            allowed = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = True
            us = self._time(lambda: torch.matmul(left, left, out=out))
            torch.backends.cuda.matmul.allow_tf32 = allowed
            self.matmul_tflops[dtype] = 2 * _MATMUL**3 / us / 1e6
            torch.cuda.empty_cache()
        return self.matmul_tflops[dtype]

    def _time(self, work: Callable[[], object]) -> float:
        self._clock = self._clock or Clock()
        graph, _ = capture(work)
        return median(self._clock.block(graph.replay, _REPLAYS))
