"""The process that is timed: calls, capture, replays between events, in the candidate's own interpreter.

What it says may convict and never acquit. It says how long replays took; the judge holds its own clock beside it,
rewrites the inputs from outside after capture, and compares what a replay wrote. There is no witness here: it pads
allocations and looks at every operation, and that is not what is to be timed.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from orchestrator.judge.ahead import facts
from orchestrator.judge.memory import ALIGNMENT
from orchestrator.judge.timing import picks
from orchestrator.judge.timing.baselines import Entry, Maker
from orchestrator.judge.timing.clock import Clock, Replay, capture
from orchestrator.judge.ways import Way
from orchestrator.judge.witness.launches import Launches
from orchestrator.judge.worker import State, describe_results, serve
from orchestrator.records import to_json

_MOST_COMPILED = 16  # kernels of one call that are described
_PADS = ((1 << 20) // ALIGNMENT, (8 << 20) // ALIGNMENT)


def main(sock: socket.socket, config: dict[str, Any]) -> None:
    """Serve the judge until it hangs up. `config["spec"]` says what is timed."""
    serve(sock, TimedState(config))


@dataclass(frozen=True)
class _Place:
    """One place in memory at which calls are timed: inputs, results, and what the captured graph takes beside them."""

    prepare: Replay
    once: Replay
    replay: Replay


class TimedState(State):
    """A worker that can also time. Holds one shape at a time, at one place or at several."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._maker: Maker | None = None
        self._launches = Launches(frozenset({config["kernel"]}))
        self._clock: Clock | None = None
        self._function: Entry = _nothing
        self._places: dict[int, _Place] = {}  # by the number of the message that asked for it, as the results are
        self._actions |= {
            "prepare": self._prepare,
            "place": self._capture,
            "time": self._time,
            "calls": self._calls,
        }

    def _import(self, message: dict[str, Any]) -> dict[str, Any]:
        self._maker = Maker(self._config["spec"], self._config["kernel"], self._config["module"])
        if self._config["spec"]["kind"] == "compiled":
            picks.by_clock(self._our_clock)
        self._entry = self._maker.make()
        return {"event": "imported"}

    def _prepare(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile, run and capture for these inputs; without `graph` the calls themselves will be timed."""
        self._forget()
        assert self._maker is not None
        inputs = self._inputs_of(message)
        self._function = self._maker.make()
        forced = message.get("launch", {})
        self._launches.begin(Way.PLAIN, forced)
        self._function(**inputs, **message["parameters"])
        self._synchronize()
        compiled = self._compiled()
        if not forced:
            self._launches.end()  # what is timed is the file as it is
        captured = self._capture(message)
        return captured | {"generated": self._maker.generated(inputs), "compiled": compiled}

    def _capture(self, message: dict[str, Any]) -> dict[str, Any]:
        """The same call where these inputs lie, as a graph if that is asked for."""
        clock, pads = self._our_clock(), _pads()
        inputs, number, parameters = self._inputs_of(message), message["id"], message["parameters"]
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()

        def once() -> object:
            return self._function(**inputs, **parameters)

        prepare = clock.moving(inputs, message["steps"], tied=message["tied"])
        if message["graph"]:
            graph, (_, result) = capture(lambda: ([_empty(count) for count in pads], once()))
            replay: Replay = graph.replay
        else:
            result, replay = once(), partial(self._call_and_keep, number, once)
        self._places[number] = _Place(prepare, once, replay)
        self._keep(number, result)
        torch.cuda.empty_cache()  # what warming up took
        took = torch.cuda.memory_reserved() - before
        return {"event": "captured", **describe_results(result), "bytes": took}

    def _our_clock(self) -> Clock:
        """The clock, which takes the device's memory, once there is something to time."""
        self._clock = self._clock or Clock()
        return self._clock

    def _inputs_of(self, message: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {name: self._tensor(0, slot) for name, slot in message["inputs"].items()}

    def _compiled(self) -> list[str]:
        """What became of the kernels that were launched. For reading only: what cannot be told costs nothing."""
        try:
            return [to_json(facts.of(one), indent=None) for one in self._launches.compiled()[:_MOST_COMPILED]]
        except Exception:  # noqa: BLE001 - Triton's own objects, in a version that need not have these fields
            return []

    def _time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Some replays at one place; the results of the last are there to be delivered, those of an earlier are not."""
        place, clock = self._places[message["place"]], self._our_clock()
        _poison(self._results[message["place"]])
        block = clock.block_alone if message["alone"] else clock.block
        return {"event": "timed", "us": block(place.replay, message["replays"], place.prepare)}

    def _calls(self, message: dict[str, Any]) -> dict[str, Any]:
        """Plain calls, one after the other, as a program makes them. The judge holds the clock."""
        place = next(iter(self._places.values()))
        for _ in range(message["calls"]):
            place.once()
        self._synchronize()
        return {"event": "called"}

    def _forget(self) -> None:
        """Give back what the last shape took."""
        self._function = _nothing
        self._places.clear()
        self._results.clear()
        torch.cuda.empty_cache()

    def _call_and_keep(self, number: int, once: Replay) -> None:
        self._keep(number, once())

    def _keep(self, number: int, result: object) -> None:
        self._results[number] = result if type(result) is tuple else (result,)


def _pads() -> tuple[int, ...]:
    """Bytes to allocate before a graph's results, of each of the two sizes of block that torch's allocator cuts: else
    the results of every capture begin where a block does, and lie alike."""
    return tuple(random.randrange(1, most) * ALIGNMENT for most in _PADS)


def _empty(count: int) -> torch.Tensor:
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def _poison(results: Sequence[object]) -> None:
    """NaN, or -1, into what a replay must overwrite."""
    for result in results:
        if isinstance(result, torch.Tensor):
            result.fill_(float("nan") if result.dtype.is_floating_point else -1)


def _nothing(**arguments: object) -> object:
    raise RuntimeError("nothing is prepared")
