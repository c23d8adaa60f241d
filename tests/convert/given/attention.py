"""A small attention module, written for the tests."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .parts import scaled

HEADS = 2


class Attention(nn.Module):
    """Causal self-attention with its projections."""

    def __init__(self, width: int, heads: int = HEADS) -> None:
        super().__init__()
        assert width % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in self.qkv(x).split(c, dim=2))
        scores = scaled(q @ k.transpose(-2, -1), c // self.heads)
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        weights = F.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


def get_init_inputs():
    return [32, 4]


def get_inputs():
    return [torch.randn(2, 16, 32)]
