"""A linear layer, written for the tests."""

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, width) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


def get_init_inputs():
    return [24, 40]


def get_inputs():
    return [torch.randn(6, 24)]
