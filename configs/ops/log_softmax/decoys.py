"""Faults that only a log-softmax can have; the general ones are made by the judge."""

import torch
from ref import log_softmax_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def no_maximum(x):
    """The maximum is not subtracted: the same until exp overflows or underflows in every element."""
    return (_wide(x) - _wide(x).exp().sum(-1, keepdim=True).log()).to(x.dtype).contiguous()


def logarithm_of_softmax(x):
    """log(softmax(x)): -inf where exp underflows, and few digits where the share is near 1."""
    return torch.softmax(_wide(x), -1).log().to(x.dtype).contiguous()


def maximum_of_0_at_least(x):
    """Padded lanes hold 0 when the maximum is taken: rows far below 0 underflow to log 0."""
    shifted = _wide(x) - _wide(x).amax(-1, keepdim=True).clamp(min=0)
    return (shifted - shifted.exp().sum(-1, keepdim=True).log()).to(x.dtype).contiguous()


def padding_counts_as_0(x):
    """Lanes beyond N load 0 instead of -inf, to the next multiple of 256, and the maximum leaves them out."""
    m = _wide(x).amax(-1, keepdim=True)
    total = (_wide(x) - m).exp().sum(-1, keepdim=True) + (-x.shape[-1] % 256) * torch.exp(-m)
    return (_wide(x) - m - total.log()).to(x.dtype).contiguous()


def block_of_minus_inf(x):
    """An online sum whose first block is -inf throughout: exp(-inf - -inf) is NaN and stays."""
    y = log_softmax_ref(x)
    lost = (x[..., : max(x.shape[-1] // 2, 1)] == -float("inf")).all(-1, keepdim=True)
    return torch.where(lost, torch.full_like(y, float("nan")), y)


def masked_elements_as_numbers(x):
    """-inf is replaced by the lowest number, as a kernel without infinities would."""
    return log_softmax_ref(x).clamp(min=torch.finfo(x.dtype).min)


def columns_beyond_65536(x):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    y[:, :65536] = log_softmax_ref(x[:, :65536])
    return y


def maximum_added_to_the_logarithm(x):
    """x - (m + log(sum)) in float32: the digits of y are lost where m is large."""
    m = _wide(x).amax(-1, keepdim=True)
    lse = m.float() + (_wide(x) - m).exp().sum(-1, keepdim=True).log().float()
    return (_wide(x) - lse).to(x.dtype).contiguous()
