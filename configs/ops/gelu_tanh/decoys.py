"""Faults that only a GELU can have; the general ones are made by the judge."""

import math

import torch


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _with_tanh(x, tanh):
    inner = math.sqrt(2 / math.pi) * (_wide(x) + 0.044715 * _wide(x) ** 3)
    return (0.5 * _wide(x) * (1 + tanh(inner))).to(x.dtype).contiguous()


def by_erf(x):
    """The exact GELU, 5e-4 away at most."""
    return torch.nn.functional.gelu(_wide(x)).to(x.dtype).contiguous()


def by_sigmoid(x):
    """x · sigmoid(1.702 x), the quick form."""
    return (_wide(x) * torch.sigmoid(1.702 * _wide(x))).to(x.dtype).contiguous()


def silu(x):
    """Another activation that looks much the same."""
    return torch.nn.functional.silu(_wide(x)).to(x.dtype).contiguous()


def no_cube(x):
    """The cubic term is forgotten."""
    return (0.5 * _wide(x) * (1 + torch.tanh(math.sqrt(2 / math.pi) * _wide(x)))).to(x.dtype).contiguous()


def exp_overflows(x):
    """tanh(z) as (exp(2z) - 1) / (exp(2z) + 1): inf / inf where z is large."""
    return _with_tanh(x, lambda z: ((2 * z).exp() - 1) / ((2 * z).exp() + 1))


def tanh_approximated(x):
    """tanh to eleven bits, as a GPU's approximate instruction gives it."""
    return _with_tanh(x, lambda z: (torch.tanh(z) * 2048).round() / 2048)


def tanh_clamped(x):
    """The argument of tanh is clamped too tightly."""
    return _with_tanh(x, lambda z: torch.tanh(z.clamp(-3, 3)))
