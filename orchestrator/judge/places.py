"""Which elements are wrong, in words: the first few with their values, and where in the result they lie."""

from __future__ import annotations

import torch

from orchestrator.records import WrongElement

_FIRST = 5


def first_wrong(wrong: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> tuple[WrongElement, ...]:
    """The first wrong elements in memory order, with what was returned and what was wanted."""
    indices = wrong.nonzero()[:_FIRST].tolist()
    return tuple(WrongElement(tuple(index), float(got[tuple(index)]), float(want[tuple(index)])) for index in indices)


def where(wrong: torch.Tensor) -> str:
    """ "all", "only in column 6 of 7 and later" and the like; empty where no such simple region holds them."""
    count = int(wrong.sum())
    if count == 0:
        return ""
    if count == wrong.numel():
        return "all elements"
    if wrong.ndim < 2:
        return _span(wrong, "element")
    rows = wrong.reshape(-1, wrong.shape[-1])
    by_column, by_row = _span(rows.any(0), "column"), _span(rows.any(1), "row")
    if by_column and bool(rows.any(1).all()):
        return by_column
    return by_row


def _span(marks: torch.Tensor, unit: str) -> str:
    """A contiguous run of marks as words, or nothing where it covers everything or is no run."""
    hits = marks.nonzero().flatten()
    first, last, size = int(hits[0]), int(hits[-1]), marks.numel()
    if last - first + 1 != hits.numel() or hits.numel() == size:
        return ""
    if first == last:
        return f"only in {unit} {first} of {size}"
    if last == size - 1:
        return f"only in {unit}s {first} and later, of {size}"
    return f"only in {unit}s {first} to {last}, of {size}"
