"""Launch parameters overridden for real: each way is launched as it says, one that cannot be is out. Needs a GPU."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, launching
from orchestrator.executors.local import LocalExecutor
from orchestrator.measured import AS_WRITTEN, Launch, SweepJob, Swept
from orchestrator.measuring import Rivals, job_of
from orchestrator.ops import Op
from orchestrator.tree import lay_out
from tests.conftest import DEVICE, zoo_kernel

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE != "gpu", reason="ORCHESTRATOR_TEST_DEVICE is not gpu"),
    pytest.mark.asyncio(loop_scope="session"),
]
SHAPES = ((4096, 1152), (16384, 4096))
TOO_MANY = Launch(num_warps=64)


async def swept(code: bytes, ways: tuple[Launch, ...], op: Op, judge: LocalExecutor, folder: Path) -> Swept:
    lay_out({**op.workspace_files(), op.spec.kernel_name: code}, folder)
    job = replace(job_of(op, config.load(), folder, Rivals()), shapes=SHAPES, dtypes=("float16",), curve=())
    return await asyncio.wait_for(judge.sweep(SweepJob(job, ways, total_s=150), print), 250)


async def test_each_way_is_launched_as_it_says(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    ways = (Launch(1), TOO_MANY, Launch(8), Launch(8, 2))
    found = await swept(zoo_kernel("good"), ways, rmsnorm, judge, tmp_path / "job")
    assert not found.fault and set(found.shapes) == {"4096x1152 float16", "16384x4096 float16"}, "in a drawn order"
    by_launch = {way.launch: way for way in found.ways}
    assert list(by_launch) == [AS_WRITTEN, *ways]
    assert by_launch[TOO_MANY].failed and not by_launch[TOO_MANY].latencies_us
    for launch, warps in ((AS_WRITTEN, 4), (Launch(1), 1), (Launch(8), 8), (Launch(8, 2), 8)):
        compiled = by_launch[launch].compiled
        assert compiled and {one.warps for one in compiled} == {warps}, "what was compiled is what was asked for"
        assert all(one.registers and one.load_bits and one.occupancy for one in compiled)
        assert all(0 < us < 1e5 for us in by_launch[launch].latencies_us)
    assert {one.stages for one in by_launch[Launch(8, 2)].compiled} == {2}
    assert not (tmp_path / "job" / "scratch").exists(), "what candidates write is not kept"


async def test_what_the_sweep_likes_is_written_down_and_gives_the_same_code(
    rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    written = launching.rewritten(zoo_kernel("good"), "k.py", Launch(16, 2))
    forced = await swept(zoo_kernel("good"), (Launch(16, 2),), rmsnorm, judge, tmp_path / "forced")
    plain = await swept(written, (), rmsnorm, judge, tmp_path / "plain")
    assert forced.ways[1].compiled == plain.ways[0].compiled


async def test_a_kernel_that_cannot_run_as_written_has_no_sweep(
    rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    found = await swept(zoo_kernel("raises"), (Launch(8),), rmsnorm, judge, tmp_path / "job")
    assert found.fault and not found.ways
