"""What stands where the kernel would be when the committed test file runs.

Each call is handed to the candidate's process and its results come back as private copies of what the candidate
delivered, so the test file, which also computes the reference, never shares an interpreter with the candidate. The
checks of a call are made here, on every call, because only here are both sides of it in hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.candidate import Candidate, Returned
from orchestrator.judge.checks import Call, CallCheck
from orchestrator.judge.checks.contract import plain_tensors
from orchestrator.judge.memory import copy_of, tensor_in
from orchestrator.judge.ways import Way
from orchestrator.records import Job

FILL = 0xFF  # of the red zones: NaN for floats, -1 for integers


@dataclass(frozen=True)
class Exchange:
    """One call that was made: its arguments, and private copies of its results."""

    inputs: Mapping[str, torch.Tensor]
    parameters: Mapping[str, object]
    returned: Returned
    results: tuple[torch.Tensor, ...]
    written: Mapping[str, torch.Tensor] = field(default_factory=dict)  # what the op's in-place inputs hold afterwards

    @property
    def value(self) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """What the kernel returned, as its caller sees it."""
        return self.results if self.returned.is_tuple else self.results[0]


class Proxy:
    """Callable with the kernel's signature; makes the checks of a call, and counts the calls."""

    def __init__(self, candidate: Candidate, job: Job, device: str, checks: Sequence[CallCheck]) -> None:
        self._candidate = candidate
        self._signature = _signature(job)
        self._device = device
        self._limits = job.limits
        self.kernel = Path(job.folder) / job.kernel
        self.in_place = job.in_place
        self._allowed = job.host_operations
        self._checks = checks
        self._compiles = device != "cpu"  # Triton's interpreter has nothing to compile
        self._seen: set[tuple[object, ...]] = set()
        self.calls = 0
        self.last: Exchange | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The candidate's results for these arguments. Raises CandidateFailed."""
        arguments = self._signature.bind(*args, **kwargs).arguments
        inputs = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        parameters = {name: value for name, value in arguments.items() if name not in inputs}
        self.last = self.ask(inputs, parameters)
        self.calls += 1
        for name, now in self.last.written.items():
            inputs[name].copy_(now)  # as the caller of the kernel would find it
        return self.last.value

    def ask(
        self, inputs: Mapping[str, torch.Tensor], parameters: Mapping[str, object], *, fill: int = FILL
    ) -> Exchange:
        """One call with all its checks."""
        before = {name: copy_of(tensor) for name, tensor in inputs.items()}
        exchange = self._exchange(before, parameters, fill=fill)
        intact, regions = self._candidate.intact, self._candidate.regions(inputs)
        evidence, allowed = exchange.returned.evidence, self._allowed
        call = Call(before, intact, regions, fill, exchange.results, evidence, self.in_place, allowed)
        for check in self._checks:
            check(call)
        return replace(exchange, written={name: tensor_in(*regions[name]).clone() for name in self.in_place})

    def ask_in(self, way: Way, exchange: Exchange) -> Exchange:
        """The same call, made in another way. Its result is not checked: it is not the kernel's usual call."""
        return self._exchange(exchange.inputs, exchange.parameters, fill=FILL, way=way)

    def hand_to(self, candidate: Candidate) -> None:
        """Calls are another process's from now on."""
        self._candidate = candidate

    @property
    def alive(self) -> bool:
        """Whether the candidate can be asked more."""
        return self._candidate.alive

    def launched(self, after: int) -> object:
        """See Candidate."""
        return self._candidate.launched(after)

    def configurations(self) -> int:
        """How many configurations the candidate's autotuned kernels are said to have at most; 1 without any."""
        return self._candidate.configurations()

    def choose_configuration(self, index: int) -> None:
        """From now on autotuned kernels run that configuration; in the interpreter only."""
        self._candidate.choose_configuration(index)

    def fetch_again(self, exchange: Exchange) -> tuple[torch.Tensor, ...]:
        """What the results of a recent call hold now."""
        return self._candidate.fetch(exchange.returned)

    def as_module(self, name: str, function: str) -> ModuleType:
        """A module to import in the kernel file's stead."""
        module = ModuleType(name)
        setattr(module, function, self)
        return module

    def _exchange(
        self, inputs: Mapping[str, torch.Tensor], parameters: Mapping[str, object], *, fill: int, way: Way = Way.PLAIN
    ) -> Exchange:
        seconds = self._seconds(inputs, parameters, way)
        returned = self._candidate.call(inputs, parameters, seconds, fill=fill, way=way)
        plain_tensors(returned.results, self._device)
        return Exchange(inputs, parameters, returned, self._candidate.take(returned))

    def _seconds(self, inputs: Mapping[str, torch.Tensor], parameters: Mapping[str, object], way: Way) -> float:
        """What was not met before may compile a new specialization, which has a limit of its own."""
        forms = tuple((tuple(tensor.shape), tensor.dtype, tensor.stride()) for tensor in inputs.values())
        key = (way, forms, tuple(parameters.values()))
        compiles = self._compiles and key not in self._seen
        self._seen.add(key)
        return self._limits.call_s + (self._limits.compile_s if compiles else 0)


def _signature(job: Job) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [inspect.Parameter(name, kind) for name in job.arguments]
        + [inspect.Parameter(name, kind, default=value) for name, value in job.parameters.items()]
    )
