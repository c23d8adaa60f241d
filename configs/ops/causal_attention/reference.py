"""Causal attention by the formula, with the whole matrix of scores, in float32 (or in float64, for float64 inputs)."""

import math

import torch


def causal_attention_ref(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """softmax(q @ k.T / sqrt(D)) @ v over j <= i, 0 from lengths[b] on.

    q: (B, H·G, T, D), k, v: (B, H, T, D), lengths: (B,); y is like q, contiguous.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    heads = torch.arange(q.shape[1], device=q.device) * k.shape[1] // q.shape[1]  # h // G
    place = torch.arange(q.shape[2], device=q.device)
    beyond = (place >= lengths[:, None])[:, None, :, None]
    keys, values = (z.to(wide).index_select(1, heads).masked_fill(beyond, 0.0) for z in (k, v))
    scores = q.to(wide) @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(place > place[:, None], -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    y = (weights @ values) / weights.sum(-1, keepdim=True)
    return y.masked_fill(beyond, 0.0).to(q.dtype).contiguous()


def make_inputs(case, inputs: dict, generator) -> dict:
    """The first sequence is as long as can be, and what lies beyond the end of any is NaN: it must not be looked at."""
    inputs["lengths"][:1] = case.dims["T"]
    for row, length in enumerate(inputs["lengths"].tolist()):
        for name in ("q", "k", "v"):
            inputs[name][row, :, length:] = math.nan
    return inputs
