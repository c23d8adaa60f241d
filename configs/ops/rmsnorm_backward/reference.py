"""Gradients of RMSNorm by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def rmsnorm_backward_ref(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients by x and by w of x · rstd · w. dy, x: (M, N), w: (N,); (M, N) and (N,), with the dtypes of x and w."""
    wide = torch.promote_types(x.dtype, torch.float32)
    rstd = 1.0 / torch.sqrt(x.to(wide).square().mean(dim=-1, keepdim=True) + eps)
    z, g = x.to(wide) * rstd, dy.to(wide) * w.to(wide)
    dx = rstd * (g - z * (g * z).mean(dim=-1, keepdim=True))
    return dx.to(x.dtype), (dy.to(wide) * z).sum(dim=0).to(w.dtype)
