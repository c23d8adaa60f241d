"""Faults that only a dropout can have; the general ones are made by the judge."""

import torch
from ref import dropout_ref, uniform


def _by(x, p, u, scale):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.where(u.view(x.shape) >= p, wide * scale, 0.0).to(x.dtype).contiguous()


def _u(x, seed):
    return uniform(seed, torch.arange(x.numel(), device=x.device))


def not_scaled(x, p, seed):
    """What is kept is not divided by 1 - p."""
    return _by(x, p, _u(x, seed), 1.0)


def scaled_by_p(x, p, seed):
    """Divided by p: the same for p = 0.5."""
    return _by(x, p, _u(x, seed), 1 / max(p, 1e-3))


def kept_and_dropped_exchanged(x, p, seed):
    """What is to be dropped is kept: as many for p = 0.5."""
    return _by(x, 1 - p, 1 - _u(x, seed), 1 / (1 - p))


def another_generator(x, p, seed):
    """A mask of torch's generator: the right share, and not the seed's mask."""
    generator = torch.Generator(device=x.device).manual_seed(seed)
    return _by(x, p, torch.rand(x.numel(), generator=generator, device=x.device), 1 / (1 - p))


def next_seed(x, p, seed):
    """The mask of another seed."""
    return dropout_ref(x, p, seed + 1)


def mask_of_the_first_row(x, p, seed):
    """The offset does not count the rows: each has the same mask."""
    u = uniform(seed, torch.arange(x.shape[1], device=x.device)).repeat(x.shape[0])
    return _by(x, p, u, 1 / (1 - p))


def mask_column_by_column(x, p, seed):
    """The offset counts down the columns."""
    u = _u(x, seed).view(x.shape[1], x.shape[0]).t()
    return _by(x, p, u.reshape(-1), 1 / (1 - p))


def times_the_mask(x, p, seed):
    """x times a mask of zeros and ones: NaN and infinities are not dropped."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * (_u(x, seed).view(x.shape) >= p) / (1 - p)).to(x.dtype).contiguous()


def seed_in_24_bits(x, p, seed):
    """The seed passes through a float32."""
    return dropout_ref(x, p, int(torch.tensor(seed, dtype=torch.float32)))
