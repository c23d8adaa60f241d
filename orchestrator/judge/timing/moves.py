"""How inputs move on between replays, so that no two replays have the same and one that is left out is seen.

Known to both sides: the process that is timed moves them, and the judge works out where they must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import torch


def steps(inputs: Mapping[str, torch.Tensor], *, tied: bool) -> dict[str, int]:
    """By how many elements each input moves on before a replay: the first by one, the next by two and so on, since of
    inputs that move alike a result that was kept could be moved along.

    Integers of `tied` inputs stay: a length says what other tensors hold.
    """
    return {
        name: 0 if tied and not tensor.is_floating_point() else count
        for count, (name, tensor) in enumerate(inputs.items(), 1)
    }


def tied(test: ModuleType) -> bool:
    """Whether an op's inputs may hold for each other: its reference has the last word on them, in its test file."""
    return hasattr(test, "last_word")


def moved(tensor: torch.Tensor, elements: int, *, tied: bool) -> torch.Tensor:
    """Its elements shifted in memory order, the last ones to the front; of `tied` inputs each row by itself, so that a
    row of padding stays one."""
    if tied:
        return tensor.roll(elements, -1) if tensor.ndim else tensor
    return tensor.reshape(-1).roll(elements).view_as(tensor)
