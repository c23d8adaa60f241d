"""Faults that only a rotary embedding can have; the general ones are made by the judge."""

import torch
from ref import rope_ref


def _both(q, k, cos, sin, rotated):
    def one(z):
        wide = z.to(torch.promote_types(z.dtype, torch.float32))
        return rotated(wide, cos[:, None, :], sin[:, None, :]).to(z.dtype).contiguous()

    return one(q), one(k)


def _half(z):
    middle = z.shape[-1] // 2
    return torch.cat([-z[..., middle:], z[..., :middle]], -1)


def interleaved(q, k, cos, sin):
    """Neighbours are rotated instead of halves, as in the other convention."""

    def rotated(z, cos, sin):
        even = z.shape[-1] // 2 * 2
        pairs = z[..., :even].unflatten(-1, (-1, 2))
        turned = torch.stack([-pairs[..., 1], pairs[..., 0]], -1).flatten(-2)
        return z * cos + torch.cat([turned, z[..., even:]], -1) * sin

    return _both(q, k, cos, sin, rotated)


def sign_exchanged(q, k, cos, sin):
    """The rotation goes the other way round."""
    return rope_ref(q, k, cos, -sin)


def first_half_of_the_tables(q, k, cos, sin):
    """Column i + D/2 of the tables is taken to equal column i."""
    middle = -(-cos.shape[-1] // 2)
    first = [torch.cat([z[:, :middle], z[:, :middle]], -1)[:, : cos.shape[-1]] for z in (cos, sin)]
    return rope_ref(q, k, *first)


def keys_not_rotated(q, k, cos, sin):
    """Only the queries are rotated."""
    return rope_ref(q, k, cos, sin)[0], k.clone(memory_format=torch.contiguous_format)


def query_heads_as_many_as_key_heads(q, k, cos, sin):
    """The grid runs over the key heads: the queries beyond them are not written."""
    rotated, keys = rope_ref(q, k, cos, sin)
    rotated[:, :, k.shape[2] :] = 0
    return rotated, keys


def position_restarts_not(q, k, cos, sin):
    """The position is the row of the flattened batch: wrong from the second batch on."""
    batch, length = q.shape[:2]
    at = (torch.arange(batch * length, device=q.device) % max(length - 1, 1)).view(batch, length)
    tables = [table[at].unsqueeze(2) for table in (cos, sin)]

    def one(z):
        wide = z.to(torch.promote_types(z.dtype, torch.float32))
        return (wide * tables[0] + _half(wide) * tables[1]).to(z.dtype).contiguous()

    return (one(q), one(k)) if length else rope_ref(q, k, cos, sin)


def head_size_of_64(q, k, cos, sin):
    """A fixed block of 64: what lies beyond is not written."""
    rotated = rope_ref(q, k, cos, sin)
    for one in rotated:
        one[..., 64:] = 0
    return rotated


def tables_rounded(q, k, cos, sin):
    """cos and sin pass through the dtype of a half-precision q."""
    return rope_ref(q, k, *(table.to(torch.float16).to(table.dtype) for table in (cos, sin)))
