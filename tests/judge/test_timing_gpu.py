"""Timing for real: an honest kernel is measured, and who cheats about when it works gains nothing. Needs a GPU."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, weigh
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge.timing.statistics import median
from orchestrator.measured import AUTOTUNED, CANDIDATE, Measured
from orchestrator.measuring import Rivals, job_of
from orchestrator.ops import Op
from orchestrator.records import Status
from orchestrator.tree import lay_out
from tests.conftest import DEVICE, ZOO

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE != "gpu", reason="ORCHESTRATOR_TEST_DEVICE is not gpu"),
    pytest.mark.asyncio(loop_scope="session"),
]
CHEATS = sorted((ZOO / "timing").glob("*.py"))
SHAPES = ((4096, 1152), (16384, 4096))
GAIN = 1.05
_honest: list[Measured] = []


async def timed(kernel: Path, op: Op, judge: LocalExecutor, folder: Path) -> Measured:
    lay_out({**op.workspace_files(), op.spec.kernel_name: kernel.read_bytes()}, folder)
    job = job_of(op, config.load(), folder, Rivals())
    job = replace(job, shapes=SHAPES, dtypes=("float16",), curve=(), rounds=12, without=(AUTOTUNED, "liger"))
    return await asyncio.wait_for(judge.measure(job, print), 200)


async def honest(op: Op, judge: LocalExecutor, folder: Path) -> Measured:
    if not _honest:
        _honest.append(await timed(ZOO / "timing" / "honest" / "one_block.py", op, judge, folder / "honest"))
    return _honest[0]


async def test_an_honest_kernel_is_measured(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    found = await honest(rmsnorm, judge, tmp_path)
    assert found.status is Status.PASSED, f"{found.message}\n{found.detail}"
    assert not weigh.fault(found) and found.generated and found.before is not None
    assert all(shape.candidate.graph and shape.candidate.name == CANDIDATE for shape in found.shapes)
    assert found.compiled and all(one.registers and one.load_bits and one.occupancy for one in found.compiled)
    assert all(0.05 < row.ceiling_share < 1.3 for row in weigh.rows(found))
    assert weigh.noise(found) < 0.05


@pytest.mark.parametrize("kernel", CHEATS, ids=lambda path: path.stem)
async def test_a_cheat_gains_nothing(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path, kernel: Path) -> None:
    truth = await honest(rmsnorm, judge, tmp_path)
    found = await timed(kernel, rmsnorm, judge, tmp_path / "cheat")
    expected = re.search(r"\| expect: (.+)", kernel.read_text().splitlines()[0])
    assert expected
    if expected[1] != "no gain":
        assert found.status is Status(expected[1]), found.message
    if found.status is Status.PASSED:
        for mine, theirs in zip(found.shapes, truth.shapes, strict=True):
            assert median(mine.candidate.latencies_us) * GAIN >= median(theirs.candidate.latencies_us), mine.name
