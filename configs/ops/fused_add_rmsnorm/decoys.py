"""Faults that only a fused sum and norm can have; the general ones are made by the judge."""

import torch
from ref import fused_add_rmsnorm_ref


def norm_of_x_alone(x, residual, w, eps):
    """The total is stored, and x is normed."""
    _, total = fused_add_rmsnorm_ref(x, residual, w, eps)
    return fused_add_rmsnorm_ref(x, torch.zeros_like(residual), w, eps)[0], total


def residual_handed_on(x, residual, w, eps):
    """The total is normed, and the residual goes on as it came."""
    return fused_add_rmsnorm_ref(x, residual, w, eps)[0], residual


def results_exchanged(x, residual, w, eps):
    """(total, y) instead of (y, total)."""
    y, total = fused_add_rmsnorm_ref(x, residual, w, eps)
    return total, y


def y_handed_on(x, residual, w, eps):
    """What goes on is the normed total: one buffer for both results."""
    y, _ = fused_add_rmsnorm_ref(x, residual, w, eps)
    return y, y.clone()


def root_of_the_first_row(x, residual, w, eps):
    """The statistic of row 0 is used for all rows: a pointer that is not advanced."""
    _, total = fused_add_rmsnorm_ref(x, residual, w, eps)
    wide = total.to(torch.promote_types(x.dtype, torch.float32))
    rstd = 1 / torch.sqrt(wide[:1].square().mean(-1, keepdim=True) + eps)
    return (wide * rstd * w).to(x.dtype), total


def columns_beyond_65536(x, residual, w, eps):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    y, total = torch.zeros_like(x), torch.zeros_like(residual)
    part = fused_add_rmsnorm_ref(x[:, :65536], residual[:, :65536], w[:65536], eps)
    y[:, :65536], total[:, :65536] = part
    return y, total
