"""Log-sum-exp by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def logsumexp_ref(x: torch.Tensor) -> torch.Tensor:
    """lse = m + log(sum(exp(x - m))) over the last axis, m the maximum where it is finite. x: (M, N); lse: (M,)."""
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    m = z.amax(dim=-1, keepdim=True)
    m = torch.where(m.isfinite(), m, 0.0)
    return torch.log(torch.exp(z - m).sum(dim=-1)) + m.squeeze(-1)
