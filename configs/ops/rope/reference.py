"""Rotary position embedding by the formula, in float32 (or in float64, for float64 inputs)."""

import torch


def rope_ref(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """z · cos + half(z) · sin for q and k. q: (B, T, H·G, D), k: (B, T, H, D), cos, sin: (T, D)."""
    return _rotated(q, cos, sin), _rotated(k, cos, sin)


def _rotated(z: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    middle = z.shape[-1] // 2
    half = torch.cat([-wide[..., middle:], wide[..., :middle]], dim=-1)
    return (wide * cos[:, None, :] + half * sin[:, None, :]).to(z.dtype).contiguous()
