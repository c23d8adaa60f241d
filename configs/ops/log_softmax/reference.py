"""Log-softmax by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def log_softmax_ref(x: torch.Tensor) -> torch.Tensor:
    """y = (x - max) - log(sum(exp(x - max))) over the last axis. x: (M, N); y is like x, contiguous."""
    wide = torch.promote_types(x.dtype, torch.float32)
    shifted = x.to(wide) - x.to(wide).amax(dim=-1, keepdim=True)
    return (shifted - torch.log(torch.exp(shifted).sum(dim=-1, keepdim=True))).to(x.dtype).contiguous()
