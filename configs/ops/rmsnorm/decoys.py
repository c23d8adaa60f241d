"""Faults that only an RMSNorm can have; the general ones are made by the judge."""

import torch
from ref import rmsnorm_ref


def layernorm(x, w, eps):
    """The mean is subtracted: LayerNorm, which is the same on rows whose mean is near 0."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return rmsnorm_ref((wide - wide.mean(-1, keepdim=True)).to(x.dtype), w, eps)


def root_of_the_first_row(x, w, eps):
    """The statistic of row 0 is used for all rows: a pointer that is not advanced."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rstd = 1 / torch.sqrt(wide[:1].square().mean(-1, keepdim=True) + eps)
    return (wide * rstd * w).to(x.dtype)


def eps_beside_the_root(x, w, eps):
    """eps is added to the root instead of under it: the same where it is small beside the variance."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide / (wide.square().mean(-1, keepdim=True).sqrt() + eps) * w).to(x.dtype)


def columns_beyond_65536(x, w, eps):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    y = torch.zeros_like(x)
    y[:, :65536] = rmsnorm_ref(x[:, :65536], w[:65536], eps)
    return y


def rstd_rounded(x, w, eps):
    """rstd passes through the dtype of a half-precision x, as when it is stored for the backward pass."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rstd = 1 / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * rstd.to(torch.float16).to(wide.dtype) * w).to(x.dtype)
