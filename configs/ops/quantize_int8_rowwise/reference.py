"""Row-wise int8 by the formula, in float32. For float64 inputs in float64, and nothing is rounded."""

import torch


def quantize_int8_rowwise_ref(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(x / scale as integers, scale) with scale = max|x| / 127 over the last axis. x: (M, N); (M, N) and (M,)."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = wide.abs().amax(dim=-1) / 127
    divisor = torch.where(scale > 0, scale, 1).unsqueeze(-1)
    quotient = (wide / divisor).contiguous()
    if x.dtype is torch.float64:
        return quotient, scale
    return quotient.round().clamp(-127, 127).to(torch.int8), scale
