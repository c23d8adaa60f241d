"""Faults that only the gradients of a gated product can have; the general ones are made by the judge."""

import torch
from ref import swiglu_backward_ref


def _wide(*tensors):
    return [one.to(torch.promote_types(one.dtype, torch.float32)) for one in tensors]


def results_exchanged(dy, gate, up):
    """(dup, dgate) instead of (dgate, dup)."""
    dgate, dup = swiglu_backward_ref(dy, gate, up)
    return dup, dgate


def derivative_of_the_sigmoid_forgotten(dy, gate, up):
    """s is taken to be constant."""
    g, z, u = _wide(dy, gate, up)
    return (g * u * z.sigmoid()).to(gate.dtype).contiguous(), swiglu_backward_ref(dy, gate, up)[1]


def up_forgotten(dy, gate, up):
    """dgate without the factor up."""
    return swiglu_backward_ref(dy, gate, torch.ones_like(up))[0], swiglu_backward_ref(dy, gate, up)[1]


def uniform_gradient(dy, gate, up):
    """dy is taken to be 1, as it is after a sum."""
    return swiglu_backward_ref(torch.ones_like(dy), gate, up)


def sigmoid_rounded(dy, gate, up):
    """s passes through the dtype of a half-precision gate."""
    g, z, u = _wide(dy, gate, up)
    s = z.sigmoid().to(gate.dtype).to(z.dtype)
    return (g * u * s * (1 + z * (1 - s))).to(gate.dtype).contiguous(), (g * z * s).to(up.dtype).contiguous()


def through_float32(dy, gate, up):
    """Computed in float32 whatever the dtype: gradcheck fails."""
    return tuple(one.to(gate.dtype) for one in swiglu_backward_ref(dy.float(), gate.float(), up.float()))


def of_geglu(dy, gate, up):
    """The gradients of the product with a GELU."""
    g, z, u = _wide(dy, gate, up)
    cdf = 0.5 * (1 + torch.erf(z / 2**0.5))
    slope = cdf + z * torch.exp(-z * z / 2) / (2 * torch.pi) ** 0.5
    return (g * u * slope).to(gate.dtype).contiguous(), (g * z * cdf).to(up.dtype).contiguous()
