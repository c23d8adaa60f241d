"""The held-out cases that a verdict draws: within the ranges, and partly at sizes that were met before."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from orchestrator import ops, resources
from orchestrator.judge import testfile
from orchestrator.ops import Op


def test_listed_sizes_come_back_with_others(rmsnorm: Op, tmp_path: Path) -> None:
    """Otherwise a kernel that remembers how many rows a width first came with passes."""
    for name, data in rmsnorm.workspace_files().items():
        (tmp_path / name).write_bytes(data)
    kernel = ModuleType("rmsnorm_triton")
    kernel.rmsnorm_triton = lambda x, w, eps: x  # type: ignore[attr-defined]
    with testfile.loaded(tmp_path, kernel) as test:
        listed = [case.dims for case in test.cases(True)]
        for seed in range(30):
            width, rows, free = [case.dims for case in test.holdouts(seed, True)[:3]]
            assert width["N"] in {dims["N"] for dims in listed} and 1 <= width["M"] <= 64
            assert rows["M"] in {1, 3, 5} and 1 <= rows["N"] <= 1024  # the listed ones within the range
            assert 1 <= free["M"] <= 64 and 1 <= free["N"] <= 1024
        assert len({tuple(test.holdouts(seed, True)[0].dims.values()) for seed in range(30)}) > 20


def test_sizes_are_drawn_in_steps(tmp_path: Path) -> None:
    """A head size is even, and no other is asked for."""
    rope = ops.load("rope", resources.shipped("configs") / "ops")
    for name, data in rope.workspace_files().items():
        (tmp_path / name).write_bytes(data)
    kernel = ModuleType("rope_triton")
    kernel.rope_triton = lambda q, k, cos, sin: (q, k)  # type: ignore[attr-defined]
    with testfile.loaded(tmp_path, kernel) as test:
        drawn = {case.dims["D"] for seed in range(30) for case in test.holdouts(seed, True)[:3]}
    assert len(drawn) > 10 and all(size % 2 == 0 and 2 <= size <= 128 for size in drawn)
