"""Code that no op can be made of, each for another reason; written for the tests."""

import torch
from torch import nn
from torch.nn import functional as F


def random(x):
    return F.dropout(x, 0.5, training=True)


def by_value(x):
    return x[x > 0]


def distinct(x):
    return torch.unique(x)


def places(x):
    return x.nonzero()


def seeded(x):
    torch.manual_seed(0)
    return x + torch.rand_like(x)


def nothing(x):
    return x[:0]


def doubled(x):
    x.mul_(2)
    return x


def drops_nothing(q):
    return F.dropout(F.scaled_dot_product_attention(q, q, q), 0.0, training=True)


scale = lambda x: x * 2  # noqa: E731 - what a person's file may hold


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


class Averages(nn.Module):
    """Puts another tensor in its buffer's place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return x * 2


class Remembers(nn.Module):
    """Gives back what it was called with first."""

    first = None

    def forward(self, x):
        if self.first is None:
            self.first = x.clone()
        return x + self.first


class Ages(nn.Module):
    """Gives back another result each time."""

    age = 0

    def forward(self, x):
        self.age += 1
        return x * self.age


class Positions(nn.Module):
    """Computes ahead what it needs, and more when it must: no memory of its inputs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("angles", torch.arange(2.0), persistent=False)

    def forward(self, x):
        if len(self.angles) < x.shape[-1]:
            self.angles = torch.arange(float(x.shape[-1]))
        return x * self.angles[: x.shape[-1]]


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
