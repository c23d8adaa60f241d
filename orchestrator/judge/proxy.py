"""What stands where the kernel would be when the committed test file runs.

Each call is handed to the candidate's process and its result comes back as private copies of what the candidate
delivered, so the test file, which also computes the reference, never shares an interpreter with the candidate. The
checks of a call (contract, unchanged inputs) are made here, because only here are both sides of the call in hand.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge.candidate import Candidate
from orchestrator.judge.checks.contract import plain_tensors
from orchestrator.judge.checks.inputs_unchanged import inputs_unchanged
from orchestrator.records import Job


class Proxy:
    """Callable with the kernel's signature; counts the calls that a test made."""

    def __init__(self, candidate: Candidate, job: Job, device: str) -> None:
        self._candidate = candidate
        self._signature = _signature(job)
        self._device = device
        self._limits = job.limits
        self._compiles = device != "cpu"  # Triton's interpreter has nothing to compile
        self._seen: set[tuple[object, ...]] = set()
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The candidate's results for these arguments. Raises CandidateFailed."""
        arguments = self._signature.bind(*args, **kwargs).arguments
        inputs = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        parameters = {name: value for name, value in arguments.items() if name not in inputs}
        before = {name: tensor.clone() for name, tensor in inputs.items()}
        returned = self._candidate.call(inputs, parameters, self._seconds(inputs))
        plain_tensors(returned.results, self._device)
        outputs = self._candidate.fetch(returned.results)
        inputs_unchanged(before, self._candidate.inputs_now(inputs))
        self.calls += 1
        return outputs if returned.is_tuple else outputs[0]

    def _seconds(self, inputs: dict[str, torch.Tensor]) -> float:
        """Shapes and dtypes not met before may compile a new specialization, which has a limit of its own."""
        key = tuple((tuple(tensor.shape), tensor.dtype) for tensor in inputs.values())
        compiles = self._compiles and key not in self._seen
        self._seen.add(key)
        return self._limits.call_s + (self._limits.compile_s if compiles else 0)

    def as_module(self, name: str, function: str) -> ModuleType:
        """A module to import in the kernel file's stead."""
        module = ModuleType(name)
        setattr(module, function, self)
        return module


def _signature(job: Job) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [inspect.Parameter(name, kind) for name in job.arguments]
        + [inspect.Parameter(name, kind, default=value) for name, value in job.parameters.items()]
    )
