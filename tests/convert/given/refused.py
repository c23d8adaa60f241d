"""Code that no op can be made of, each for another reason; written for the tests."""

import torch
from torch import nn
from torch.nn import functional as F


def random(x):
    return F.dropout(x, 0.5, training=True)


def by_value(x):
    return x[x > 0]


def keeps(x, out):
    out.copy_(x)
    return x + 1


def listed(xs):
    return torch.stack(xs).sum(0)


def anything(*xs):
    return xs[0]


def masks(x):
    return x > 0


class Counts(nn.Module):
    """Writes into its own buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return x * 2


class Unread(nn.Module):
    """Reads one of its two parameters."""

    def __init__(self):
        super().__init__()
        self.read = nn.Parameter(torch.ones(8))
        self.unread = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.read


class Configured(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def get_inputs():
    return [torch.randn(4, 8)]
