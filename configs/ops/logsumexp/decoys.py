"""Faults that only a log-sum-exp can have; the general ones are made by the judge."""

import torch
from ref import logsumexp_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def no_maximum(x):
    """The maximum is not subtracted: the same until exp overflows or underflows in every element."""
    return _wide(x).exp().sum(-1).log()


def infinite_maximum_subtracted(x):
    """inf - inf: NaN for a row of -inf alone, and for one that holds +inf."""
    m = _wide(x).amax(-1)
    return (_wide(x) - m.unsqueeze(-1)).exp().sum(-1).log() + m


def maximum_of_0_at_least(x):
    """Padded lanes hold 0 when the maximum is taken: rows far below 0 underflow to log 0."""
    m = _wide(x).amax(-1).clamp(min=0)
    return torch.where(m.isfinite(), (_wide(x) - m.unsqueeze(-1)).exp().sum(-1).log() + m, m)


def padding_counts_as_0(x):
    """Lanes beyond N load 0 instead of -inf, to the next multiple of 256."""
    return logsumexp_ref(torch.nn.functional.pad(x, (0, -x.shape[-1] % 256)))


def block_of_minus_inf(x):
    """An online sum whose first block is -inf throughout: exp(-inf - -inf) is NaN and stays."""
    lse = logsumexp_ref(x)
    lost = (x[..., : max(x.shape[-1] // 2, 1)] == -float("inf")).all(-1)
    return torch.where(lost, torch.full_like(lse, float("nan")), lse)


def columns_beyond_65536(x):
    """One block of at most 65536 columns and no loop: what lies beyond is not counted."""
    return logsumexp_ref(x[:, :65536])


def rounded_to_the_dtype_of_x(x):
    """The result passes through the dtype of a half-precision x."""
    return logsumexp_ref(x).to(x.dtype).to(torch.promote_types(x.dtype, torch.float32))


def base_two(x):
    """exp2 and log2 without the factors between the bases."""
    m = _wide(x).amax(-1)
    return (_wide(x) - m.unsqueeze(-1)).exp2().sum(-1).log2() + m
