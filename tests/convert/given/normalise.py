"""Rows over their length, as a classifier's head does it."""

import torch


def normalise(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Each row over its Euclidean norm."""
    return x / torch.sqrt(x.square().sum(-1, keepdim=True) + eps)


def get_inputs():
    return [torch.randn(6, 40)]
