"""Faults that only an attention can have; the general ones are made by the judge."""

import math

import torch
from ref import causal_attention_ref


def _attention(q, k, v, lengths, *, mask=None, factor=None, heads=None, last=torch.Tensor.clone, shift=True):
    """The op with one part exchanged."""
    wide = torch.promote_types(q.dtype, torch.float32)
    own = torch.arange(q.shape[1], device=q.device) * k.shape[1] // q.shape[1]
    keys, values = (z.to(wide)[:, own if heads is None else heads] for z in (k, v))
    place = torch.arange(q.shape[2], device=q.device)
    beyond = (place >= lengths[:, None])[:, None, :, None]
    q, keys, values = q.to(wide).masked_fill(beyond, 0), keys.masked_fill(beyond, 0), values.masked_fill(beyond, 0)
    scores = last(q @ keys.transpose(-1, -2) * (factor or 1 / math.sqrt(q.shape[-1])))
    scores = scores.masked_fill(place > place[:, None] if mask is None else mask, -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True) if shift else scores)
    y = (weights @ values) / weights.sum(-1, keepdim=True)
    return y.masked_fill(beyond, 0)


def not_causal(q, k, v, lengths):
    """Positions behind the own one count too, up to the end of the sequence."""
    place = torch.arange(q.shape[2], device=q.device)
    mask = (place >= lengths[:, None]).view(-1, 1, 1, q.shape[2])
    return _attention(q, k, v, lengths, mask=mask).nan_to_num().to(q.dtype)


def own_position_masked(q, k, v, lengths):
    """j < i instead of j <= i; the first position sees itself."""
    place = torch.arange(q.shape[2], device=q.device)
    return _attention(q, k, v, lengths, mask=(place >= place[:, None]) & (place > 0)).to(q.dtype)


def one_position_ahead(q, k, v, lengths):
    """j <= i + 1."""
    place = torch.arange(q.shape[2], device=q.device)
    return _attention(q, k, v, lengths, mask=place > place[:, None] + 1).to(q.dtype)


def not_scaled(q, k, v, lengths):
    """The factor 1 / sqrt(D) is forgotten."""
    return _attention(q, k, v, lengths, factor=1.0).to(q.dtype)


def scaled_for_64(q, k, v, lengths):
    """The factor of another head size is written into the kernel."""
    return _attention(q, k, v, lengths, factor=0.125).to(q.dtype)


def head_of_64(q, k, v, lengths):
    """Of a head of 128 only the first 64 columns count in the scores."""
    cut = [torch.cat([z[..., :64], torch.zeros_like(z[..., 64:])], -1) for z in (q, k)]
    return _attention(*cut, v, lengths).to(q.dtype)


def key_head_by_remainder(q, k, v, lengths):
    """Query head h takes key head h % H: the same for G = 1 or H = 1."""
    heads = torch.arange(q.shape[1], device=q.device) % k.shape[1]
    return _attention(q, k, v, lengths, heads=heads).to(q.dtype)


def lengths_not_looked_at(q, k, v, lengths):
    """Positions from the sequence's end on are computed as any other."""
    return causal_attention_ref(q, k, v, torch.full_like(lengths, q.shape[2]))


def length_of_the_first(q, k, v, lengths):
    """The pointer to the lengths is not advanced."""
    return causal_attention_ref(q, k, v, lengths[:1].expand(len(lengths)))


def no_maximum(q, k, v, lengths):
    """The maximum is not subtracted: exp overflows."""
    return _attention(q, k, v, lengths, shift=False).to(q.dtype)


def scores_in_half_precision(q, k, v, lengths):
    """The scores pass through the dtype of a half-precision q."""
    return _attention(q, k, v, lengths, last=lambda s: s.to(torch.float16).to(s.dtype)).to(q.dtype)


def last_whole_block_of_keys(q, k, v, lengths):
    """Keys beyond the last whole block of 16 are seen by none but themselves."""
    place = torch.arange(q.shape[2], device=q.device)
    tail = (place >= q.shape[2] // 16 * 16) & (place != place[:, None])
    return _attention(q, k, v, lengths, mask=(place > place[:, None]) | tail).to(q.dtype)


def maximum_not_corrected(q, k, v, lengths):
    """An online softmax that keeps the sums of an earlier block as they were when the maximum rises."""
    y = _attention(q, k, v, lengths)
    half = q.shape[2] // 2
    place = torch.arange(q.shape[2], device=q.device)
    late = (place >= half) & (place[:, None] >= half) & (half > 0)
    early = _attention(q, k, v, lengths, mask=(place > place[:, None]) | late)
    return torch.where((place >= half)[:, None], (y + early) / 2, y).to(q.dtype)
