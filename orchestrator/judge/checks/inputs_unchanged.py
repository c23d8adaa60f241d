"""The inputs are, bit for bit, what they were: the shared buffer against private copies made before the call.

An input that the op has overwritten holds the result that it is to hold, instead.

Catches: an input zeroed, scaled, or used as the output, by torch or by the kernel itself; a result promised in place
that is a tensor beside it. The values are the reference's to judge.
Cannot catch: a change undone before the call returns.
"""

from __future__ import annotations

import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.judge.memory import bytes_of, counts, tensor_in
from orchestrator.records import Status


def inputs_unchanged(call: Call) -> None:
    """Raises CandidateFailed naming the first input whose bytes differ."""
    if call.intact and not call.in_place:
        return
    for name, index in call.in_place.items():
        _holds(call, name, index)
    kept = [name for name in call.before if name not in call.in_place]
    differ = [bytes_of(call.before[name]) != bytes_of(tensor_in(*call.regions[name])) for name in kept]
    for name, count in zip(kept, counts(differ), strict=True):
        if count:
            raise CandidateFailed(Status.INPUT_MUTATED, f"input {name} was changed by the call ({count} bytes differ)")


def _holds(call: Call, name: str, index: int) -> None:
    if index >= len(call.results):
        return  # the number of results is `contract`'s business
    now, result = tensor_in(*call.regions[name]), call.results[index]
    if now.shape == result.shape and now.dtype == result.dtype and torch.equal(bytes_of(now), bytes_of(result)):
        return
    raise CandidateFailed(
        Status.WRONG_VALUES, f"input {name} does not hold result {index}, which is to be written into it and returned"
    )
