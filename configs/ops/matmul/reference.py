"""Product of two matrices in float32 (or in float64, for float64 inputs)."""

import torch


def matmul_ref(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """c = a @ b. a: (M, K), b: (K, N); c: (M, N), contiguous, with a's dtype."""
    wide = torch.promote_types(a.dtype, torch.float32)
    return torch.matmul(a.to(wide), b.to(wide)).to(a.dtype)
