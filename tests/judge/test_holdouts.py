"""The held-out cases that a verdict draws: within the ranges, and partly at sizes that were met before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from orchestrator import ops, resources
from orchestrator.judge import sweep, testfile
from orchestrator.ops import Op


@contextmanager
def loaded(op: Op, folder: Path) -> Iterator[ModuleType]:
    """The op's test file, with a kernel that returns its first argument."""
    for name, data in op.workspace_files().items():
        (folder / name).write_bytes(data)
    kernel = ModuleType(op.spec.kernel_name.removesuffix(".py"))
    setattr(kernel, op.spec.function, lambda *arguments, **parameters: arguments[0])
    with testfile.loaded(folder, kernel) as test:
        yield test


def test_listed_sizes_come_back_with_others(rmsnorm: Op, tmp_path: Path) -> None:
    """Otherwise a kernel that remembers how many rows a width first came with passes."""
    with loaded(rmsnorm, tmp_path) as test:
        listed = [case.dims for case in test.cases(True)]
        for seed in range(30):
            width, rows, free = [case.dims for case in test.holdouts(seed, True)[:3]]
            assert width["N"] in {dims["N"] for dims in listed} and 1 <= width["M"] <= 64
            assert rows["M"] in {1, 3, 5} and 1 <= rows["N"] <= 1024  # the listed ones within the range
            assert 1 <= free["M"] <= 64 and 1 <= free["N"] <= 1024
        assert len({tuple(test.holdouts(seed, True)[0].dims.values()) for seed in range(30)}) > 20


def test_rows_between_the_drawn_and_the_longest_are_asked_for(rmsnorm: Op, tmp_path: Path) -> None:
    """A loop that leaves the tail out passed where it began beyond every drawn size and the longest is whole blocks."""
    with loaded(rmsnorm, tmp_path) as test:
        sizes = [case.dims["N"] for seed in range(50) for case in test.holdouts(seed)[-2:]]
        assert len(test.holdouts(0)) == len(test.holdouts(0, True)) + 1, "one of them where an interpreter runs it"
    assert all(8192 <= size < 131072 + 32 and size % 32 == 16 for size in sizes)
    assert sum(size > 16384 for size in sizes) > 60 and min(sizes) < 16384


def test_where_no_row_is_far_longer_nothing_lies_between(tmp_path: Path) -> None:
    dropout = ops.load("dropout", resources.shipped("configs") / "ops")
    with loaded(dropout, tmp_path) as test:
        assert max(case.dims["N"] for seed in range(20) for case in test.holdouts(seed, True)) == 9001


def test_other_parameters_come_in_turn(rmsnorm: Op, tmp_path: Path) -> None:
    """A kernel that caps eps passed where chance asked for one value twice."""
    with loaded(rmsnorm, tmp_path) as test:
        for seed in range(20):
            assert len({case.parameters["eps"] for case in test.holdouts(seed, True)[:3]}) == 3


def test_sizes_are_drawn_in_steps(tmp_path: Path) -> None:
    """A head size is even, and no other is asked for."""
    rope = ops.load("rope", resources.shipped("configs") / "ops")
    with loaded(rope, tmp_path) as test:
        drawn = {case.dims["D"] for seed in range(30) for case in test.holdouts(seed, True)[:3]}
    assert len(drawn) > 10 and all(size % 2 == 0 and 2 <= size <= 128 for size in drawn)


def test_a_size_that_the_kernel_names_is_asked_for(rmsnorm: Op, tmp_path: Path) -> None:
    """And one less, and one more: the numbers it compares something with before all others."""
    with loaded(rmsnorm, tmp_path) as test:
        for seed in range(10):
            sizes = [case.dims["N"] for case in test.named(seed, (5120,), (8, 64), True)]
            assert {5119, 5120, 5121} <= set(sizes) and len(sizes) == 3
            full = test.named(seed, (3001,), (1 << 20,))
            assert {("M", 3001), ("N", 3001)} <= {(dim, size) for case in full for dim, size in case.dims.items()}
        assert test.named(0, (), (1 << 30,), True) == [] == test.named(0, (1 << 30,), ())


def test_values_that_tell_are_drawn_at_their_own_scale(rmsnorm: Op, tmp_path: Path) -> None:
    """Rows of different scale times 1000 took more than the tolerance of an honest matmul."""
    with loaded(rmsnorm, tmp_path) as test:
        drawn = [case for seed in range(50) for case in test.holdouts(seed, True)]
    assert {case.scale for case in drawn if case.values == "normal"} > {1.0}
    assert {case.scale for case in drawn if case.values != "normal"} == {1.0}


def test_a_result_that_underflows_has_a_precision(rmsnorm: Op, tmp_path: Path) -> None:
    """The reference keeps nothing of it and a more careful kernel something."""
    with loaded(rmsnorm, tmp_path) as test:
        nothing = torch.zeros(1, 16)
        exact = torch.full((1, 16), 2e-23, dtype=torch.float64)
        assert test.precision(torch.full((1, 16), 3e-23), nothing, exact) < 1
        wrong = torch.full((1, 16), 3e-3)
        assert test.precision(wrong, nothing, exact) > test.PRECISION


def test_precision_is_not_asked_of_a_few_elements(rmsnorm: Op, tmp_path: Path) -> None:
    """On an H200 one swiglu of gate -25 was 5.4 times the reference's error off, as exp's argument is rounded there."""
    with loaded(rmsnorm, tmp_path) as test:
        exact = torch.full((1, 16), 1.0, dtype=torch.float64)
        coarse, fine = torch.full((1, 16), 1 + 1e-6), torch.ones(1, 16)
        assert test.precision(coarse, fine, exact) > test.PRECISION
        few = slice(None), slice(15)
        assert test.precision(coarse[few], fine[few], exact[few]) == 0


def test_one_case_that_is_looked_at_closely_is_no_whole_block(rmsnorm: Op, tmp_path: Path) -> None:
    """Loads behind the end of a tensor were seen or not, as the seed had it."""
    with loaded(rmsnorm, tmp_path) as test:
        planned = [case for case in test.cases(True) if case.dims["N"] in (127, 128)]
        for seed in range(30):
            chosen = [planned[number] for number in sweep._chosen(planned, seed, 4096)]
            assert len(chosen) == 3 and any(case.dims["N"] == 127 for case in chosen)
