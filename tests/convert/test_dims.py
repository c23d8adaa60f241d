"""Sizes made into dims: pure functions of sizes that were seen."""

from __future__ import annotations

import pytest

from orchestrator.convert import dims
from orchestrator.convert.dims import Axis, Span
from orchestrator.errors import UsageError


def test_equal_sizes_are_one_group_and_a_second_example_tells_them_apart() -> None:
    one = {"x": (8, 8), "w": (8,)}
    assert dims.groups([one]) == [(Axis("x", 0), Axis("x", 1), Axis("w", 0))]
    assert dims.groups([one, {"x": (3, 5), "w": (5,)}]) == [(Axis("x", 0),), (Axis("x", 1), Axis("w", 0))]


def test_examples_of_other_tensors_are_refused() -> None:
    with pytest.raises(UsageError, match="x is not the same kind"):
        dims.groups([{"x": (8, 8)}, {"x": (8,)}])


def test_names_are_those_of_the_field_and_hide_no_argument() -> None:
    parts = [(Axis("x", 0),), (Axis("x", 1),), (Axis("x", 2), Axis("B", 0)), (Axis("B", 1),)]
    assert dims.names(parts, {"x": 3, "B": 2}, ["x", "B"]) == ["K", "T", "C", "L"]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([7, 7, 7], "7"),
        ([3, 5, 11], "C"),
        ([9, 15, 33], "3 * C"),
        ([4, 6, 12], "C + 1"),
        ([5, 12, 13], "C + T"),
        ([6, 35, 22], "C * T"),
        ([2, 9, 5], None),
    ],
)
def test_a_size_is_the_plainest_arithmetic_that_holds_for_all(sizes: list[int], expected: str | None) -> None:
    assert dims.expression(sizes, [{"C": 3, "T": 2}, {"C": 5, "T": 7}, {"C": 11, "T": 2}]) == expected


def test_a_part_of_a_dim_needs_sizes_that_it_divides() -> None:
    assert dims.expression([2, 4, 6], [{"C": 8}, {"C": 16}, {"C": 24}]) == "C // 4"


def test_shapes_keep_to_the_spans() -> None:
    spans = {"T": Span(1, 12), "C": Span(4, 64, 4)}
    shapes = dims.around({"T": 12, "C": 32}, spans)
    assert shapes[0] == (1, 4) and (12, 32) in shapes
    assert all(1 <= t <= 12 and 4 <= c <= 64 and c % 4 == 0 for t, c in shapes)
    assert any((c // 4) % 2 for _, c in shapes) and len(shapes) >= 5


def test_an_example_is_grown_in_every_dim_that_varies() -> None:
    spans = {"T": Span(1, 4096), "C": Span(32, 32)}
    assert dims.grown({"T": 16, "C": 32}, spans, lambda sizes: sizes["T"] * sizes["C"], 1 << 14) == {"T": 512, "C": 32}
