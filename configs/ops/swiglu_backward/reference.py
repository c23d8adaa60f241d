"""Gradients of SwiGLU by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def swiglu_backward_ref(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients by gate and by up of gate · sigmoid(gate) · up. All (M, N); the results are contiguous."""
    wide = torch.promote_types(gate.dtype, torch.float32)
    g, z, u = dy.to(wide), gate.to(wide), up.to(wide)
    s = 1.0 / (1.0 + torch.exp(-z))
    dgate = g * u * s * (1.0 + z * (1.0 - s))
    return dgate.to(gate.dtype).contiguous(), (g * z * s).to(up.dtype).contiguous()
