"""Sizes as arithmetic."""

from __future__ import annotations

from orchestrator import arithmetic


def test_the_elements_of_a_shape_are_its_sizes_each_for_itself() -> None:
    """(M, N // 2) has not M * N // 2 elements where N is odd."""
    text = arithmetic.count(("M", "N // 2", "N - 1", "3"))
    assert arithmetic.value(text, {"M": 5, "N": 7}) == 5 * 3 * 6 * 3
    assert arithmetic.count(()) == "1" and arithmetic.count(("M", "N")) == "M * N"
