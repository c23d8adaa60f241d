"""Faults that only a gated product can have; the general ones are made by the judge."""

import torch
from ref import swiglu_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def gate_and_up_exchanged(gate, up):
    """The other half goes through the sigmoid."""
    return swiglu_ref(up, gate)


def sigmoid_alone(gate, up):
    """GLU: the gate's own factor is forgotten."""
    return (_wide(gate).sigmoid() * _wide(up)).to(gate.dtype).contiguous()


def gelu_instead(gate, up):
    """GeGLU, which looks much the same."""
    return (torch.nn.functional.gelu(_wide(gate)) * _wide(up)).to(gate.dtype).contiguous()


def product_rounded_first(gate, up):
    """gate · up in the inputs' dtype, which overflows in float16: inf · 0 is NaN."""
    return (_wide(gate * up) * _wide(gate).sigmoid()).to(gate.dtype).contiguous()


def sigmoid_clamped(gate, up):
    """exp(-gate) is kept from overflowing by a clamp of the gate."""
    return (_wide(gate) * _wide(gate).clamp(-10, 10).sigmoid() * _wide(up)).to(gate.dtype).contiguous()
