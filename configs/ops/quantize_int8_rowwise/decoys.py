"""Faults that only a quantization can have; the general ones are made by the judge."""

import torch
from ref import quantize_int8_rowwise_ref


def _by(x, scale, rounded=torch.round):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    divisor = torch.where(scale > 0, scale, 1).unsqueeze(-1)
    return rounded(wide / divisor).clamp(-128, 127).to(torch.int8).contiguous(), scale


def truncated(x):
    """Rounded towards 0, as a conversion to an integer does."""
    return _by(x, quantize_int8_rowwise_ref(x)[1].float(), torch.trunc)


def rounded_down(x):
    """Rounded down."""
    return _by(x, quantize_int8_rowwise_ref(x)[1].float(), torch.floor)


def half_added(x):
    """A half is added and the fraction cut off: wrong for negative numbers."""
    return _by(x, quantize_int8_rowwise_ref(x)[1].float(), lambda z: torch.trunc(z + 0.5))


def maximum_without_magnitude(x):
    """The largest number instead of the largest magnitude."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return _by(x, (wide.amax(-1).clamp(min=0) / 127).float())


def divided_by_128(x):
    """scale = max / 128: the largest is clamped."""
    q, scale = quantize_int8_rowwise_ref(x)
    return _by(x, scale.float() * (127 / 128))


def one_scale_for_all(x):
    """The largest magnitude of the tensor instead of the row's."""
    scale = quantize_int8_rowwise_ref(x)[1].float()
    return _by(x, torch.full_like(scale, scale.amax() if scale.numel() else 0))


def wraps_around(x):
    """128 becomes -128: the quotient is rounded up and not clamped."""
    q, scale = quantize_int8_rowwise_ref(x)
    return torch.where(q.round() == 127, -128, q).to(torch.int8), scale


def scale_in_half_precision(x):
    """The scale passes through float16, where a small one is subnormal or 0."""
    return _by(x, quantize_int8_rowwise_ref(x)[1].to(torch.float16).float())


def zero_row_as_nan(x):
    """0 / 0 becomes an integer: the lowest there is."""
    q, scale = quantize_int8_rowwise_ref(x)
    return torch.where(scale.unsqueeze(-1) > 0, q, -128).to(torch.int8), scale


def scale_of_a_zero_row_as_1(x):
    """What is divided by is returned, and not the scale."""
    q, scale = quantize_int8_rowwise_ref(x)
    return q, torch.where(scale > 0, scale, 1)


def inverse_scale(x):
    """127 / max is returned, and not max / 127."""
    q, scale = quantize_int8_rowwise_ref(x)
    return q, torch.where(scale > 0, 1 / scale, 0)


def columns_beyond_65536(x):
    """One block of at most 65536 columns and no loop: what lies beyond is neither counted nor written."""
    q = torch.zeros(x.shape, dtype=torch.int8, device=x.device)
    q[:, :65536], scale = quantize_int8_rowwise_ref(x[:, :65536])
    return q, scale
