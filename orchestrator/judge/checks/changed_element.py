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
        if not tensor.numel() or not tensor.is_floating_point():
            continue
        changed = copy_of(tensor)
        place = series.seed % tensor.numel()
        tiny = torch.finfo(tensor.dtype).tiny
        changed[numpy.unravel_index(place, tensor.shape)] = 4 * tensor.abs().max().clamp(min=tiny, max=1e3)
        if not series.right({**series.first.inputs, name: changed}):
            message = f"wrong after one element of {name} (number {place}) was changed between two calls"
            raise CandidateFailed(Status.WRONG_VALUES, message)
