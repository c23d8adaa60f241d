"""Sum of two vectors, added in float32 (or in float64, for float64 inputs)."""

import torch


def vector_add_ref(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """z = x + y. x, y: (N,); z has x's shape and dtype."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return (x.to(wide) + y.to(wide)).to(x.dtype)
