"""Gradient of a softmax by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def softmax_backward_ref(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """dx = y · (dy - sum(dy · y)) over the last axis. dy, y: (M, N); dx is like y, contiguous."""
    wide = torch.promote_types(y.dtype, torch.float32)
    g, p = dy.to(wide), y.to(wide)
    return (p * (g - (g * p).sum(dim=-1, keepdim=True))).to(y.dtype).contiguous()


def make_inputs(case, inputs: dict, generator) -> dict:
    """y is the softmax of what it was, in the same place in memory."""
    inputs["y"].copy_(torch.softmax(inputs["y"].double(), dim=-1))
    return inputs
