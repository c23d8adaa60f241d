"""Tensors as facts, and facts made into tensors again."""

from __future__ import annotations

from typing import Any

import torch

from orchestrator.probed import Seen


def seen(tensor: torch.Tensor) -> Seen:
    """What `convert` is told of a tensor."""
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    if tensor.is_complex():
        return Seen(shape, dtype, tensor.is_contiguous())
    values = tensor.detach().double()
    finite = values[values.isfinite()]
    if not finite.numel():
        return Seen(shape, dtype, tensor.is_contiguous())
    low, high, mean = (float(f(finite)) for f in (torch.min, torch.max, torch.mean))
    return Seen(shape, dtype, tensor.is_contiguous(), low, high, mean, float(finite.std(correction=0)))


def drawn(like: Seen, generator: torch.Generator) -> torch.Tensor:
    """A tensor with other values like those that were seen, in the same kind of place."""
    dtype = getattr(torch, like.dtype)
    if dtype is torch.bool:
        tensor = torch.rand(like.shape, generator=generator) < max(like.mean, 0.0)
    elif not like.floating:
        tensor = torch.randint(int(like.low), int(like.high) + 1, like.shape, generator=generator).to(dtype)
    else:
        tensor = (like.mean + like.spread * torch.randn(like.shape, generator=generator)).to(dtype)
        tensor = tensor.abs() if like.low >= 0 else -tensor.abs() if like.high <= 0 else tensor
    if not like.contiguous and tensor.ndim > 1:
        tensor = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return tensor


def tensors_of(result: Any) -> tuple[torch.Tensor, ...] | None:
    """The tensors of a result, in order; None where it is something else than tensors, and None, in a tuple."""
    several = result if isinstance(result, tuple | list) else (result,)
    found = tuple(one for one in several if one is not None)
    return found if found and all(isinstance(one, torch.Tensor) for one in found) else None
