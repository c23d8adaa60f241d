"""Faults that only a LayerNorm can have; the general ones are made by the judge."""

import torch
from ref import layernorm_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _normed(x, w, b, eps, centred, var):
    return (centred / torch.sqrt(var + eps) * w + b).to(x.dtype)


def padded_lanes_hold_minus_mean(x, w, b, eps):
    """Lanes beyond N are 0 when loaded and -mean when centred, and are squared with the others."""
    centred = _wide(x) - _wide(x).mean(-1, keepdim=True)
    padding = (1 << (x.shape[-1] - 1).bit_length()) - x.shape[-1]
    more = _wide(x).mean(-1, keepdim=True).square() * padding
    return _normed(x, w, b, eps, centred, (centred.square().sum(-1, keepdim=True) + more) / x.shape[-1])


def divided_by_N_minus_1(x, w, b, eps):
    """The variance of a sample, as torch.var has it by default."""
    centred = _wide(x) - _wide(x).mean(-1, keepdim=True)
    return _normed(x, w, b, eps, centred, centred.square().sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1))


def rmsnorm(x, w, b, eps):
    """The mean is not subtracted: the same on rows whose mean is near 0."""
    return _normed(x, w, b, eps, _wide(x), _wide(x).square().mean(-1, keepdim=True))


def mean_kept_in_the_variance(x, w, b, eps):
    """The mean of squares instead of the variance, with the mean subtracted from the result only."""
    centred = _wide(x) - _wide(x).mean(-1, keepdim=True)
    return _normed(x, w, b, eps, centred, _wide(x).square().mean(-1, keepdim=True))


def bias_before_the_weight(x, w, b, eps):
    """(x̂ + b) · w instead of x̂ · w + b."""
    plain = layernorm_ref(_wide(x), torch.ones_like(_wide(w)), torch.zeros_like(_wide(b)), eps)
    return ((plain + b) * w).to(x.dtype)


def statistics_of_the_first_row(x, w, b, eps):
    """The statistics of row 0 are used for all rows: a pointer that is not advanced."""
    centred = _wide(x) - _wide(x)[:1].mean(-1, keepdim=True)
    return _normed(x, w, b, eps, centred, _wide(x)[:1].var(-1, correction=0, keepdim=True))


def columns_beyond_65536(x, w, b, eps):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    y = torch.zeros_like(x)
    y[:, :65536] = layernorm_ref(x[:, :65536], w[:65536], b[:65536], eps)
    return y
