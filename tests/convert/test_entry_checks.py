"""What an entry says and checks of its arguments: a note where it lacks, never a refusal."""

from __future__ import annotations

from orchestrator import entry_checks
from orchestrator.ops import Op

CHECKED = b'''"""K."""
import torch
import triton


def _require(x, w):
    if x.ndim != 2 or x.dtype != w.dtype:
        raise TypeError(f"x is {x.dtype}, {x.shape}")


def rmsnorm_triton(x, w, eps=1e-6):
    """x (M, N), w (N,), one dtype, contiguous, on one device."""
    _require(x, w)
    assert x.is_contiguous(), x.stride()
    if x.device != w.device:
        raise ValueError(f"{x.device}, {w.device}")
    return x
'''


def test_an_entry_that_says_and_checks_all_has_no_note(rmsnorm: Op) -> None:
    assert entry_checks.notes(CHECKED, rmsnorm.spec) == ()


def test_what_is_not_said_or_not_checked_is_named(rmsnorm: Op) -> None:
    kernel = CHECKED.replace(b", contiguous", b"").replace(b"    assert x.is_contiguous(), x.stride()\n", b"")
    said, checked = entry_checks.notes(kernel, rmsnorm.spec)
    assert "does not state what it assumes of contiguity" in said and "does not check contiguity" in checked


def test_a_file_that_does_not_parse_has_none(rmsnorm: Op) -> None:
    assert entry_checks.notes(b"def", rmsnorm.spec) == ()
