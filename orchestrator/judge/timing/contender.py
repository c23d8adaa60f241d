"""The judge's end of one process that is timed: prepare a shape, time blocks of replays, see what they wrote.

Owns what the judge must know of it to check it: the values it put into the inputs, how often they have been moved on
since, and how long it waited. The process may be a candidate's: what it says is checked for form here, for truth by
whoever holds the other clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import ValidationError

from orchestrator.judge import channel
from orchestrator.judge.candidate import Candidate, Returned
from orchestrator.judge.checks.contract import plain_tensors
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import ALIGNMENT, Arena, Slot
from orchestrator.judge.timing import moves
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.statistics import Block, median
from orchestrator.records import Compiled, Limits, from_json
from orchestrator.text import printable

_FILL = 0xFF
_ROOM, _MOST_BYTES = 6, 3 << 30  # of the device for all places: so many times the inputs' buffer, and at most
_FORM = "its answer about times is malformed"
_KERNEL_NAME = 120  # characters

Tensors = Mapping[str, torch.Tensor]


@dataclass
class _Place:
    """One place in memory at which it is timed."""

    offset: int  # of the inputs in their buffer
    returned: Returned
    moved: int = 0  # how often the inputs were, since they were written


class Contender(Candidate):
    """One process that is timed. It has a scratch folder and two buffers of its own."""

    def __init__(
        self,
        server: ForkServer,
        spec: Spec,
        folder: Path,
        scratch: Path,
        device: str,
        arenas: tuple[Arena, Arena],
        limits: Limits,
    ) -> None:
        super().__init__(
            *(server, folder / spec.file, spec.function, device, arenas, limits),
            scratch=scratch,
            more={"spec": spec.as_config()},
        )
        self.spec = spec
        self.generated = ""
        self.compiled: tuple[Compiled, ...] = ()  # by its own account
        self._fresh: Tensors = {}
        self._steps: Mapping[str, int] = {}
        self._tied = False
        self._places: list[_Place] = []
        self._turn = -1

    def prepare(
        self,
        inputs: Tensors,
        parameters: Mapping[str, object],
        *,
        graph: bool,
        seconds: float,
        tied: bool = False,
        launch: Mapping[str, int] | None = None,
        places: int = 1,
    ) -> None:
        """Have it compile, run and, with `graph`, capture a call on these inputs, which may be `tied` to each other;
        with other launch options than it gives, where `launch` says so.

        At so many places in memory, or as many as there is room for: where its data lie makes a short kernel faster or
        slower by several percent, and stays as long as they lie there.
        """
        self._steps, self._tied = moves.steps(inputs, tied=tied), tied
        self._places, self._turn = [], -1
        call = {"parameters": dict(parameters), "steps": self._steps, "tied": tied, "graph": graph}
        answer = self._captured({"do": "prepare", "launch": dict(launch or {}), **call}, inputs, seconds)
        self.generated = str(answer.get("generated", ""))
        self.compiled = self._facts(answer.get("compiled", []))
        for _ in range(1, min(places, self._room(inputs, answer))):
            self._captured({"do": "place", **call}, inputs, self._limits.call_s)

    def _captured(self, message: channel.Message, inputs: Tensors, seconds: float) -> channel.Message:
        """Its answer, once it has captured the call at one more place."""
        offset = len(self._places) * self._stride(inputs)
        placed = self._placed_at(offset, inputs)
        slots = {name: vars(slot) for name, slot in placed.items()}
        answer = self._ask({**message, "inputs": slots}, seconds, "preparation for timing")
        returned = self._described(answer, evidence={})
        plain_tensors(returned.results, self._device)
        self._places.append(_Place(offset, returned))
        return answer

    def _room(self, inputs: Tensors, answer: channel.Message) -> int:
        """For how many places there is room, in the buffer and on the device, by what the first took."""
        stride, told, room = self._stride(inputs), answer.get("bytes"), min(_ROOM * self._inputs.nbytes, _MOST_BYTES)
        took = stride + (told if isinstance(told, int) and told >= 0 else room)
        return min(self._inputs.nbytes // stride, room // took)

    def _stride(self, inputs: Tensors) -> int:
        """Bytes from one place to the next: an odd number of allocation units, so that no two begin alike."""
        return (self._slots(inputs)[1] // ALIGNMENT | 1) * ALIGNMENT

    @property
    def places(self) -> int:
        """At how many places in memory it is timed, in turn."""
        return len(self._places)

    def _facts(self, told: object) -> tuple[Compiled, ...]:
        if not isinstance(told, list):
            raise self._forged(_FORM)
        try:
            found = [from_json(Compiled, str(text)) for text in told]
        except ValidationError:
            raise self._forged("what it says of its compiled kernels is malformed") from None
        return tuple(replace(one, kernel=printable(one.kernel, _KERNEL_NAME)) for one in found)

    def renew(self, inputs: Tensors) -> None:
        """Other values into the same places, from outside: what was captured must read them."""
        self._fresh = inputs
        for place in self._places:
            self._placed_at(place.offset, inputs)
            place.moved = 0

    def _placed_at(self, offset: int, inputs: Tensors) -> dict[str, Slot]:
        placed = {name: replace(slot, offset=slot.offset + offset) for name, slot in self._slots(inputs)[0].items()}
        self._write(placed, inputs, _FILL)
        self._synchronize()
        return placed

    def time(self, replays: int, *, alone: bool = False) -> tuple[float, Block]:
        """The median of a block's replays by its own account, in microseconds, and the block by the judge's clock.

        Each block is timed at the next place. `alone`: the device is waited for around each replay, for work that could
        not be captured.
        """
        self._turn = (self._turn + 1) % len(self._places)
        place = self._places[self._turn]
        message: channel.Message = {"do": "time", "place": place.returned.call, "replays": replays, "alone": alone}
        begun = time.perf_counter()
        answer = self._ask(message, self._limits.call_s, "timing")
        waited = (time.perf_counter() - begun) * 1e6
        place.moved += replays + 1
        times = answer.get("us")
        if not isinstance(times, list) or len(times) != replays or not all(map(self._is_time, times)):
            raise self._forged(_FORM)
        return median(times), Block(replays, waited)

    def calls(self, count: int) -> Block:
        """Plain calls by the judge's clock."""
        begun = time.perf_counter()
        self._ask({"do": "calls", "calls": count}, self._limits.call_s, "calls")
        return Block(count, (time.perf_counter() - begun) * 1e6)

    def last_replay(self) -> tuple[Tensors, torch.Tensor | tuple[torch.Tensor, ...]]:
        """The inputs that the last replay of the last block must have had, and what it wrote."""
        place = self._places[self._turn]
        results = self.fetch(place.returned)
        inputs = {
            name: moves.moved(tensor, place.moved * self._steps[name], tied=self._tied)
            for name, tensor in self._fresh.items()
        }
        return inputs, results if place.returned.is_tuple else results[0]

    def _is_time(self, us: object) -> bool:
        return isinstance(us, float) and 0 < us <= self._limits.call_s * 1e6
