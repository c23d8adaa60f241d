"""The judge's end of one process that is timed: prepare a shape, time blocks of replays, see what they wrote.

Owns what the judge must know of it to check it: the values it put into the inputs, how often they have been moved on
since, and how long it waited. The process may be a candidate's: what it says is checked for form here, for truth by
whoever holds the other clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from pydantic import ValidationError

from orchestrator.judge.candidate import Candidate, Returned
from orchestrator.judge.checks.contract import plain_tensors
from orchestrator.judge.forkserver import ForkServer
from orchestrator.judge.memory import Arena
from orchestrator.judge.timing import moves
from orchestrator.judge.timing.baselines import Spec
from orchestrator.judge.timing.statistics import Block, median
from orchestrator.records import Compiled, Limits, from_json
from orchestrator.text import printable

_FILL = 0xFF
_FORM = "its answer about times is malformed"
_KERNEL_NAME = 120  # characters

Tensors = Mapping[str, torch.Tensor]


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
        self._moved = 0
        self._returned: Returned | None = None

    def prepare(
        self,
        inputs: Tensors,
        parameters: Mapping[str, object],
        *,
        graph: bool,
        seconds: float,
        tied: bool = False,
        launch: Mapping[str, int] | None = None,
    ) -> None:
        """Have it compile, run and, with `graph`, capture a call on these inputs, which may be `tied` to each other;
        with other launch options than it gives, where `launch` says so.
        """
        self._steps, self._tied = moves.steps(inputs, tied=tied), tied
        placed = self._place(inputs, _FILL)
        message = {
            "do": "prepare",
            "inputs": {name: vars(slot) for name, slot in placed.items()},
            "parameters": dict(parameters),
            "steps": self._steps,
            "tied": tied,
            "graph": graph,
            "launch": dict(launch or {}),
        }
        answer = self._ask(message, seconds, "preparation for timing")
        self._returned = self._described(answer, evidence={})
        plain_tensors(self._returned.results, self._device)
        self.generated = str(answer.get("generated", ""))
        self.compiled = self._facts(answer.get("compiled", []))

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
        self._place(inputs, _FILL)
        self._fresh, self._moved = inputs, 0

    def time(self, replays: int, *, alone: bool = False) -> tuple[float, Block]:
        """The median of a block's replays by its own account, in microseconds, and the block by the judge's clock.

        `alone`: the device is waited for around each replay, for work that could not be captured.
        """
        begun = time.perf_counter()
        answer = self._ask({"do": "time", "replays": replays, "alone": alone}, self._limits.call_s, "timing")
        waited = (time.perf_counter() - begun) * 1e6
        self._moved += replays + 1
        times = answer.get("us")
        if not isinstance(times, list) or len(times) != replays or not all(_is_time(us) for us in times):
            raise self._forged(_FORM)
        return median(times), Block(replays, waited)

    def calls(self, count: int) -> Block:
        """Plain calls by the judge's clock."""
        begun = time.perf_counter()
        self._ask({"do": "calls", "calls": count}, self._limits.call_s, "calls")
        return Block(count, (time.perf_counter() - begun) * 1e6)

    def last_replay(self) -> tuple[Tensors, torch.Tensor | tuple[torch.Tensor, ...]]:
        """The inputs that the last replay of the last block must have had, and what it wrote."""
        assert self._returned is not None
        results = self.fetch(self._returned)
        inputs = {
            name: moves.moved(tensor, self._moved * self._steps[name], tied=self._tied)
            for name, tensor in self._fresh.items()
        }
        return inputs, results if self._returned.is_tuple else results[0]


def _is_time(us: object) -> bool:
    return isinstance(us, float) and 0 <= us < math.inf
