"""Faults that only the gradient of a softmax can have; the general ones are made by the judge."""

import torch
from ref import softmax_backward_ref


def _wide(dy, y):
    wide = torch.promote_types(y.dtype, torch.float32)
    return dy.to(wide), y.to(wide)


def uniform_gradient(dy, y):
    """The sum is that of dy alone, by the row's mean: right for equal shares."""
    g, p = _wide(dy, y)
    return (p * (g - g.mean(-1, keepdim=True))).to(y.dtype).contiguous()


def sum_forgotten(dy, y):
    """y · dy alone."""
    g, p = _wide(dy, y)
    return (p * g).to(y.dtype).contiguous()


def sum_not_weighted(dy, y):
    """y · dy less the sum, which is not multiplied by y."""
    g, p = _wide(dy, y)
    return (p * g - (g * p).sum(-1, keepdim=True)).to(y.dtype).contiguous()


def of_log_softmax(dy, y):
    """The gradient of log-softmax for a y that is its exp."""
    g, p = _wide(dy, y)
    return (g - p * g.sum(-1, keepdim=True)).to(y.dtype).contiguous()


def through_float32(dy, y):
    """Computed in float32 whatever the dtype: gradcheck fails."""
    return softmax_backward_ref(dy.float(), y.float()).to(y.dtype)


def written_into_the_wrong_one(dy, y):
    """dy and y are exchanged."""
    return softmax_backward_ref(y, dy)


def columns_beyond_65536(dy, y):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    dx = torch.zeros(y.shape, dtype=y.dtype, device=y.device)
    dx[:, :65536] = softmax_backward_ref(dy[:, :65536], y[:, :65536])
    return dx
