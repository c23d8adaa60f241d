"""The inputs are, bit for bit, what they were: the candidate's buffers against private copies made before the call.

Catches: an input zeroed, scaled, or used as the output, by torch or by the kernel itself.
Cannot catch: a change undone before the call returns.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.records import Status


def inputs_unchanged(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> None:
    """Raises CandidateFailed naming the first input whose bytes differ."""
    for name, original in before.items():
        if not torch.equal(_bytes(original), _bytes(after[name])):
            changed = int((_bytes(original) != _bytes(after[name])).sum())
            raise CandidateFailed(
                Status.INPUT_MUTATED, f"input {name} was changed by the call ({changed} bytes differ)"
            )


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)
