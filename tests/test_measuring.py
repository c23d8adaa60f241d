"""What a measurement is asked with and leaves, and that a judge without a GPU refuses it in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import config, measuring
from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.records import from_json
from orchestrator.tree import lay_out
from tests.conftest import DEVICE, zoo_kernel
from tests.measurements import measured, shape


@pytest.mark.skipif(DEVICE != "cpu", reason="there is a GPU")
@pytest.mark.asyncio(loop_scope="session")
async def test_without_a_gpu_the_judge_says_so_and_lives_on(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    def export(into: Path, name: str, data: bytes) -> None:
        lay_out({**rmsnorm.workspace_files(), name: data}, into)

    rivals = measuring.Rivals(champion=b"champion = 1\n", best=b"best = 1\n")
    before = await judge.start()
    with pytest.raises(JudgeError, match="^there is nothing to measure on"):
        await measuring.measure_kernel(
            zoo_kernel("good"), rivals, rmsnorm, export, judge, config.load(), tmp_path, lambda text: None
        )
    assert await judge.start() == before and judge.pid
    job = tmp_path / "job"
    assert (job / "champion" / "rmsnorm_triton.py").read_bytes() == b"champion = 1\n"
    assert (job / "best" / "rmsnorm_triton.py").read_bytes() == b"best = 1\n"
    assert (job / "rmsnorm_triton.py").read_bytes() == zoo_kernel("good")


def test_a_job_asks_for_all_that_the_op_names(rmsnorm: Op, tmp_path: Path) -> None:
    settings = config.load(overrides=("measure.without=[liger]", "measure.rounds=8"))
    job = measuring.job_of(rmsnorm, settings, tmp_path, measuring.Rivals())
    assert job.shapes == rmsnorm.spec.bench.shapes and job.dtypes == ("float32", "float16", "bfloat16")
    assert [baseline.name for baseline in job.baselines] == ["torch.nn.functional.rms_norm", "liger"]
    assert (job.without, job.rounds, job.champion, job.best) == (("liger",), 8, "", "")
    assert job.flops_at_least, "what the author says is needed, unless it is said to be the reference's"
    bench = rmsnorm.spec.bench.model_copy(update={"flops_of": "reference"})
    counted = Op(rmsnorm.folder, rmsnorm.spec.model_copy(update={"bench": bench}), rmsnorm.reference)
    assert not measuring.job_of(counted, settings, tmp_path, measuring.Rivals()).flops_at_least


def test_what_is_kept_of_a_measurement(tmp_path: Path) -> None:
    found = measured(shape(40), generated={"torch.compile-4096x4096-float16.py": "def call(args): ..."})
    measuring.keep(found, tmp_path)
    assert (tmp_path / "inductor" / "torch.compile-4096x4096-float16.py").read_text() == "def call(args): ..."
    again = from_json(Measured, (tmp_path / "measured.json").read_text())
    assert again.shapes == found.shapes and not again.generated
