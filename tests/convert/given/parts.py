"""What attention.py takes from a module beside it."""

import math

import torch


def scaled(scores: torch.Tensor, size: int) -> torch.Tensor:
    return scores / math.sqrt(size)
