"""Faults that only the gradients of an RMSNorm can have; the general ones are made by the judge."""

import torch
from ref import rmsnorm_backward_ref


def _parts(dy, x, w, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    rstd = 1 / torch.sqrt(x.to(wide).square().mean(-1, keepdim=True) + eps)
    return dy.to(wide), x.to(wide) * rstd, w.to(wide), rstd


def statistic_taken_as_constant(dy, x, w, eps):
    """dx = dy · w · rstd: the gradient through rstd is forgotten."""
    g, z, v, rstd = _parts(dy, x, w, eps)
    return (g * v * rstd).to(x.dtype), rmsnorm_backward_ref(dy, x, w, eps)[1]


def weight_outside_the_mean(dy, x, w, eps):
    """The mean is of dy · z, and w comes after."""
    g, z, v, rstd = _parts(dy, x, w, eps)
    return (rstd * v * (g - z * (g * z).mean(-1, keepdim=True))).to(x.dtype), (g * z).sum(0).to(w.dtype)


def uniform_gradient(dy, x, w, eps):
    """dy is taken to be 1, as it is after a sum."""
    return rmsnorm_backward_ref(torch.ones_like(dy), x, w, eps)


def dw_of_x(dy, x, w, eps):
    """dw = sum of dy · x, which is not normed."""
    return rmsnorm_backward_ref(dy, x, w, eps)[0], (dy.to(w.dtype) * x).sum(0).to(w.dtype)


def dw_as_mean(dy, x, w, eps):
    """The mean over the rows instead of the sum."""
    dx, dw = rmsnorm_backward_ref(dy, x, w, eps)
    return dx, dw / max(len(x), 1)


def dw_added_up_in_the_dtype_of_w(dy, x, w, eps):
    """The sum over the rows is kept in a half-precision w's dtype."""
    g, z, _, _ = _parts(dy, x, w, eps)
    total = torch.zeros_like(w)
    for row in g * z:
        total = (total.to(row.dtype) + row).to(w.dtype)
    return rmsnorm_backward_ref(dy, x, w, eps)[0], total


def dw_of_the_last_row(dy, x, w, eps):
    """Each row overwrites dw instead of adding to it."""
    g, z, _, _ = _parts(dy, x, w, eps)
    return rmsnorm_backward_ref(dy, x, w, eps)[0], (g * z)[-1:].sum(0).to(w.dtype)


def dw_not_written_for_no_rows(dy, x, w, eps):
    """Memory of before shows where there are no rows."""
    dx, dw = rmsnorm_backward_ref(dy, x, w, eps)
    return dx, dw if len(x) else torch.full_like(dw, 7)


def of_layernorm(dy, x, w, eps):
    """The mean of dy · w is subtracted too."""
    g, z, v, rstd = _parts(dy, x, w, eps)
    h = g * v
    dx = rstd * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
    return dx.to(x.dtype), (g * z).sum(0).to(w.dtype)


def through_float32(dy, x, w, eps):
    """Computed in float32 whatever the dtype: gradcheck fails."""
    dx, dw = rmsnorm_backward_ref(dy.float(), x.float(), w.float(), eps)
    return dx.to(x.dtype), dw.to(w.dtype)
