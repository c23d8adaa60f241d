"""The process that is timed: calls, capture, replays between events, in the candidate's own interpreter.

What it says may convict and never acquit. It says how long replays took; the judge holds its own clock beside it,
rewrites the inputs from outside after capture, and compares what a replay wrote. There is no witness here: it pads
allocations and looks at every operation, and that is not what is to be timed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import torch

from orchestrator.judge.ahead import facts
from orchestrator.judge.timing.baselines import Maker
from orchestrator.judge.timing.clock import Clock, capture
from orchestrator.judge.ways import Way
from orchestrator.judge.witness.launches import Launches
from orchestrator.judge.worker import State, describe_results, serve
from orchestrator.records import to_json

_MOST_COMPILED = 16  # kernels of one call that are described


def main(sock: socket.socket, config: dict[str, Any]) -> None:
    """Serve the judge until it hangs up. `config["spec"]` says what is timed."""
    serve(sock, TimedState(config))


class TimedState(State):
    """A worker that can also time. Holds one shape at a time."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._maker: Maker | None = None
        self._launches = Launches(frozenset({config["kernel"]}))
        self._clock: Clock | None = None
        self._once: Callable[[], object] = _nothing
        self._replay: Callable[[], object] = _nothing
        self._shape = 0  # the number of the message that prepared it; its results are kept under that
        self._actions |= {"prepare": self._prepare, "time": self._time, "calls": self._calls}

    def _import(self, message: dict[str, Any]) -> dict[str, Any]:
        self._maker = Maker(self._config["spec"], self._config["kernel"], self._config["module"])
        self._entry = self._maker.make()
        return {"event": "imported"}

    def _prepare(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile, run and capture for these inputs; without `graph` the calls themselves will be timed."""
        self._forget()
        assert self._maker is not None
        inputs = {name: self._tensor(0, slot) for name, slot in message["inputs"].items()}
        function, parameters = self._maker.make(), message["parameters"]
        self._shape = message["id"]

        def once() -> object:
            return function(**inputs, **parameters)

        forced = message.get("launch", {})
        self._launches.begin(Way.PLAIN, forced)
        result = once()
        self._synchronize()
        compiled = self._compiled()
        if not forced:
            self._launches.end()  # what is timed is the file as it is
        self._clock = self._clock or Clock()
        self._clock.moves(inputs, message["steps"], tied=message["tied"])
        self._once = once
        if message["graph"]:
            graph, result = capture(once)
            self._replay = graph.replay
        else:
            self._replay = self._call_and_keep
        self._keep(result)
        told = {"generated": self._maker.generated(inputs), "compiled": compiled}
        return {"event": "prepared", **describe_results(result), **told}

    def _compiled(self) -> list[str]:
        """What became of the kernels that were launched. For reading only: what cannot be told costs nothing."""
        try:
            return [to_json(facts.of(one), indent=None) for one in self._launches.compiled()[:_MOST_COMPILED]]
        except Exception:  # noqa: BLE001 - Triton's own objects, in a version that need not have these fields
            return []

    def _time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Some replays; the results of the last are there to be delivered, those of an earlier one are not."""
        assert self._clock is not None
        _poison(self._results[self._shape])
        block = self._clock.block_alone if message["alone"] else self._clock.block
        return {"event": "timed", "us": block(self._replay, message["replays"])}

    def _calls(self, message: dict[str, Any]) -> dict[str, Any]:
        """Plain calls, one after the other, as a program makes them. The judge holds the clock."""
        for _ in range(message["calls"]):
            self._once()
        self._synchronize()
        return {"event": "called"}

    def _forget(self) -> None:
        """Give back what the last shape took."""
        self._once = self._replay = _nothing
        self._results.clear()
        torch.cuda.empty_cache()

    def _call_and_keep(self) -> None:
        self._keep(self._once())

    def _keep(self, result: object) -> None:
        self._results = {self._shape: result if type(result) is tuple else (result,)}


def _poison(results: Sequence[object]) -> None:
    """NaN, or -1, into what a replay must overwrite."""
    for result in results:
        if isinstance(result, torch.Tensor):
            result.fill_(float("nan") if result.dtype.is_floating_point else -1)


def _nothing() -> None:
    raise RuntimeError("nothing is prepared")
