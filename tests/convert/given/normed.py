"""A class with buffers and a dropout, written for the tests."""

import torch
from torch import nn


class Standardised(nn.Module):
    """(x - mean) / sqrt(var + eps) · weight with kept statistics, and a dropout that does nothing in eval mode."""

    def __init__(self, width: int, eps: float = 1e-5, p: float = 0.1) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))
        self.drop = nn.Dropout(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop((x - self.mean) * torch.rsqrt(self.var + self.eps) * self.weight)


def get_init_inputs():
    return [48]


def get_inputs():
    return [torch.randn(6, 48)]
