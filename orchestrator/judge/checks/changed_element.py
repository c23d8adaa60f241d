"""One element changed in the middle of each input changes the result, and rightly.

Catches: a result remembered by a fingerprint of a few elements; inputs that are only sampled.
Cannot catch: a fingerprint of all elements, which costs what computing costs.
"""

from __future__ import annotations

import numpy
import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.memory import copy_of
from orchestrator.records import Status


def changed_element(series: Series) -> None:
    """Raises CandidateFailed where a call with one element changed is wrong."""
    for name, tensor in series.first.inputs.items():
        if changeable(tensor) and not series.right(with_one_changed(series, name)):
            place = series.seed % tensor.numel()
            message = f"wrong after one element of {name} (number {place}) was changed between two calls"
            raise CandidateFailed(Status.WRONG_VALUES, message)


def changeable(tensor: torch.Tensor) -> bool:
    """Whether an element can be changed and the inputs still be what the op promises: indices may not."""
    return bool(tensor.numel() > 0 and tensor.is_floating_point())


def with_one_changed(series: Series, name: str) -> dict[str, torch.Tensor]:
    """The inputs of the first call, with one element of one of them larger than the others."""
    tensor = series.first.inputs[name]
    changed = copy_of(tensor)
    place = numpy.unravel_index(series.seed % tensor.numel(), tensor.shape)
    changed[place] = 4 * tensor.abs().max().clamp(min=torch.finfo(tensor.dtype).tiny, max=1e3)
    return {**series.first.inputs, name: changed}
