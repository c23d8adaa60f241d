"""LayerNorm by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def layernorm_ref(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """y = (x - mean) · rstd · w + b over the last axis. x: (M, N), w, b: (N,); y has x's shape and dtype."""
    wide = torch.promote_types(x.dtype, torch.float32)
    centred = x.to(wide) - x.to(wide).mean(dim=-1, keepdim=True)
    rstd = 1.0 / torch.sqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
    return (centred * rstd * w.to(wide) + b.to(wide)).to(x.dtype)
