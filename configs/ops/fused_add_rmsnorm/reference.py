"""x + residual and the RMSNorm of it by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def fused_add_rmsnorm_ref(
    x: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """(total · rstd · w, total) with total = x + residual. x, residual: (M, N), w: (N,); both results are like x."""
    wide = torch.promote_types(x.dtype, torch.float32)
    total = (x.to(wide) + residual.to(wide)).to(residual.dtype)
    var = total.to(wide).square().mean(dim=-1, keepdim=True)
    rstd = 1.0 / torch.sqrt(var + eps)
    return (total.to(wide) * rstd * w.to(wide)).to(x.dtype), total
