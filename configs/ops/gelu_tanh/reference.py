"""GELU in its tanh form by the formula, in float32 (or in float64, for float64 inputs)."""

import math

import torch


def gelu_tanh_ref(x: torch.Tensor) -> torch.Tensor:
    """y = 0.5 · x · (1 + tanh(sqrt(2/pi) · (x + 0.044715 · x³))). x: (M, N); y is like x, contiguous."""
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z * z * z)
    return (0.5 * z * (1 + torch.tanh(inner))).to(x.dtype).contiguous()
