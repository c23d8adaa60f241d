"""Faults that only a gated product can have; the general ones are made by the judge."""

import math

import torch
from ref import geglu_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def gate_and_up_exchanged(gate, up):
    """The other half goes through the GELU."""
    return geglu_ref(up, gate)


def swiglu_instead(gate, up):
    """SwiGLU, which looks much the same."""
    return (torch.nn.functional.silu(_wide(gate)) * _wide(up)).to(gate.dtype).contiguous()


def by_erf(gate, up):
    """The exact GELU, 5e-4 away at most."""
    return (torch.nn.functional.gelu(_wide(gate)) * _wide(up)).to(gate.dtype).contiguous()


def product_rounded_first(gate, up):
    """gate · up in the inputs' dtype, which overflows in float16: inf · 0 is NaN."""
    inner = math.sqrt(2 / math.pi) * (_wide(gate) + 0.044715 * _wide(gate) ** 3)
    return (_wide(gate * up) * 0.5 * (1 + torch.tanh(inner))).to(gate.dtype).contiguous()


def exp_overflows(gate, up):
    """tanh(z) as (exp(2z) - 1) / (exp(2z) + 1): inf / inf where z is large."""
    z = (2 * math.sqrt(2 / math.pi) * (_wide(gate) + 0.044715 * _wide(gate) ** 3)).exp()
    return (0.5 * _wide(gate) * (1 + (z - 1) / (z + 1)) * _wide(up)).to(gate.dtype).contiguous()


def gelu_alone(gate, up):
    """The product with up is forgotten."""
    return geglu_ref(gate, torch.ones_like(up))
