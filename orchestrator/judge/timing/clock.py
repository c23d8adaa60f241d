"""Replays of one piece of GPU work, each with fresh inputs and a cold cache, timed by events.

Used in the process that is timed and, for the card's own speed, in the judge. Before each replay the inputs are moved
on (`moves`), so that a kernel that remembers gives wrong values, and the L2 cache is overwritten. Both together are one
captured graph, so that the host is never what is waited for.

A captured graph is joined: when its stream is done, so is everything in it. A call that could not be captured may leave
work on streams of its own, which events on the current one do not see. Such a call is waited for with the whole device,
and what that wait takes when there is nothing to wait for is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

from orchestrator.judge.timing.moves import moved
from orchestrator.judge.timing.statistics import median

_FLUSH_BYTES = 256 << 20
_WARM_UP = 3
_EMPTY = 5  # replays of nothing, to know what waiting takes
_RESOLUTION_US = 0.5  # of an event
Replay = Callable[[], object]
T = TypeVar("T")


class Clock:
    """Times replays on the current GPU. What is done before each is to empty the cache, if nothing else is given."""

    def __init__(self) -> None:
        cache = torch.cuda.get_device_properties().L2_cache_size
        self._flush = torch.empty(max(_FLUSH_BYTES, 2 * cache), dtype=torch.uint8, device="cuda")
        self._wait_us: float | None = None  # for the whole device, when it has nothing left to do

    def moving(self, inputs: Mapping[str, torch.Tensor], steps: Mapping[str, int], *, tied: bool) -> Replay:
        """What is done before a replay that is to find these tensors moved on, by so many elements each."""

        def prepare() -> None:
            for name, elements in steps.items():
                if elements:
                    inputs[name].copy_(moved(inputs[name], elements, tied=tied))
            self._flush.zero_()

        graph, _ = capture(prepare)
        replay: Replay = graph.replay
        return replay

    def block(self, replay: Replay, count: int, prepare: Replay | None = None) -> list[float]:
        """Microseconds of each of `count` replays, after one untimed: the GPU may come from another process."""
        return self._spans(replay, count, prepare or self._flush.zero_, _nothing)

    def block_alone(self, replay: Replay, count: int, prepare: Replay) -> list[float]:
        """The same of work that may be on any stream: each replay has the device to itself."""
        if self._wait_us is None:
            self._wait_us = median(self._spans(_nothing, _EMPTY, prepare, torch.cuda.synchronize))
        return [
            max(_RESOLUTION_US, us - self._wait_us)
            for us in self._spans(replay, count, prepare, torch.cuda.synchronize)
        ]

    def _spans(self, replay: Replay, count: int, prepare: Replay, settle: Callable[[], None]) -> list[float]:
        events = [(_event(), _event()) for _ in range(count)]
        prepare()
        replay()
        for start, end in events:
            settle()
            prepare()
            start.record()
            replay()
            settle()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in events]


def capture(work: Callable[[], T]) -> tuple[torch.cuda.CUDAGraph, T]:
    """The work as a graph, and what it returned, which every replay writes anew. Runs it a few times first."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    torch.cuda.synchronize()
    return graph, result


def _nothing() -> None:
    """Nothing to do, or to wait for."""


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
