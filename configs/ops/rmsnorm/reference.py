"""RMSNorm by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def rmsnorm_ref(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """y = x · rstd · w with rstd = 1 / sqrt(mean(x², -1) + eps). x: (M, N), w: (N,); y has x's shape and dtype."""
    wide = torch.promote_types(x.dtype, torch.float32)
    x_wide = x.to(wide)
    var = x_wide.square().mean(dim=-1, keepdim=True)
    rstd = 1.0 / torch.sqrt(var + eps)
    return (x_wide * rstd * w.to(wide)).to(x.dtype)
