"""Faults that only a cross-entropy can have; the general ones are made by the judge."""

import torch
from ref import cross_entropy_ref


def _shifted(logits):
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return wide, wide.amax(-1, keepdim=True)


def _loss(logits, labels, ignore_index, lse):
    wide, _ = _shifted(logits)
    picked = wide.gather(-1, labels.clamp(0, logits.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
    return (lse - picked).masked_fill(labels == ignore_index, 0.0)


def no_maximum(logits, labels, ignore_index):
    """The maximum is not subtracted: the same until exp overflows or underflows in every element."""
    return _loss(logits, labels, ignore_index, _shifted(logits)[0].exp().sum(-1).log())


def padding_counts_as_0(logits, labels, ignore_index):
    """Lanes beyond V load 0 instead of -inf, to the next multiple of 256, and the maximum leaves them out."""
    wide, m = _shifted(logits)
    padding = -logits.shape[-1] % 256
    lse = ((wide - m).exp().sum(-1) + padding * torch.exp(-m.squeeze(-1))).log() + m.squeeze(-1)
    return _loss(logits, labels, ignore_index, lse)


def maximum_of_0_at_least(logits, labels, ignore_index):
    """Padded lanes hold 0 when the maximum is taken: rows far below 0 underflow to log 0."""
    wide, m = _shifted(logits)
    m = m.clamp(min=0)
    return _loss(logits, labels, ignore_index, (wide - m).exp().sum(-1).log() + m.squeeze(-1))


def block_of_minus_inf(logits, labels, ignore_index):
    """An online maximum whose first block is -inf throughout: exp(-inf - -inf) is NaN and stays."""
    loss = cross_entropy_ref(logits, labels, ignore_index)
    half = max(logits.shape[-1] // 2, 1)
    lost = (logits[:, :half] == -float("inf")).all(-1) & (labels != ignore_index)
    return torch.where(lost, torch.full_like(loss, float("nan")), loss)


def ignored_rows_multiplied_by_0(logits, labels, ignore_index):
    """The loss of an ignored row times 0 instead of 0: NaN and infinities stay."""
    kept = (labels != ignore_index).to(torch.float32)
    return cross_entropy_ref(logits, labels, -(1 << 40)) * kept


def negative_labels_ignored(logits, labels, ignore_index):
    """Any negative label is ignored, and ignore_index is not looked at."""
    return cross_entropy_ref(logits, labels, -(1 << 40)).masked_fill(labels < 0, 0.0)


def mean_over_rows(logits, labels, ignore_index):
    """The mean loss of the rows that are not ignored, for all of them."""
    loss = cross_entropy_ref(logits, labels, ignore_index)
    kept = labels != ignore_index
    return torch.where(kept, loss.sum() / kept.sum().clamp(min=1), loss)


def columns_beyond_65536(logits, labels, ignore_index):
    """One block of at most 65536 columns and no loop: the rest of the vocabulary is not counted."""
    _, m = _shifted(logits[:, :65536])
    lse = (_shifted(logits[:, :65536])[0] - m).exp().sum(-1).log() + m.squeeze(-1)
    return _loss(logits, labels, ignore_index, lse)


def labels_read_as_int32(logits, labels, ignore_index):
    """An int64 label is read as int32: every other one is the upper half of the one before."""
    halves = labels.view(torch.int32)[: len(labels)].to(torch.int64)
    return cross_entropy_ref(logits, halves, ignore_index)
