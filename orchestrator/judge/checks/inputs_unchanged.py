"""The inputs are, bit for bit, what they were: the shared buffer against private copies made before the call.

Catches: an input zeroed, scaled, or used as the output, by torch or by the kernel itself.
Cannot catch: a change undone before the call returns.
"""

from __future__ import annotations

import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.judge.memory import tensor_in
from orchestrator.records import Status


def inputs_unchanged(call: Call) -> None:
    """Raises CandidateFailed naming the first input whose bytes differ."""
    for name, original in call.before.items():
        differ = _bytes(original) != _bytes(tensor_in(*call.regions[name]))
        if count := int(differ.sum()):
            raise CandidateFailed(Status.INPUT_MUTATED, f"input {name} was changed by the call ({count} bytes differ)")


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
