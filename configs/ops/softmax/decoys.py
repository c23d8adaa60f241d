"""Faults that only a softmax can have; the general ones are made by the judge."""

import torch
from ref import softmax_ref


def no_maximum(x):
    """The maximum is not subtracted: the same until exp overflows or underflows in every element."""
    e = x.to(torch.promote_types(x.dtype, torch.float32)).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)


def maximum_of_0_at_least(x):
    """Padded lanes hold 0 when the maximum is taken: rows far below 0 underflow to 0 / 0."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    e = (wide - wide.amax(-1, keepdim=True).clamp(min=0)).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)


def block_of_minus_inf(x):
    """An online softmax whose first block is -inf throughout: exp(-inf - -inf) is NaN and stays."""
    y = softmax_ref(x)
    half = max(x.shape[-1] // 2, 1)
    lost = (x[..., :half] == -float("inf")).all(-1, keepdim=True)
    return torch.where(lost, torch.full_like(y, float("nan")), y)


def uniform_where_nan_is_due(x):
    """A row of -inf alone gives equal shares instead of NaN."""
    y = softmax_ref(x)
    lost = (x == -float("inf")).all(-1, keepdim=True)
    return torch.where(lost, torch.full_like(y, 1 / x.shape[-1]), y)


def columns_beyond_65536(x):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    y[:, :65536] = softmax_ref(x[:, :65536])
    return y


def log_softmax(x):
    """The last exp is forgotten."""
    return torch.log_softmax(x.to(torch.promote_types(x.dtype, torch.float32)), -1).to(x.dtype)
