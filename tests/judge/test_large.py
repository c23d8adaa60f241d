"""A case whose offsets pass 2^31 elements: called whole, compared in parts. With small sizes, and on a GPU as it is."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pynvml
import pytest
import torch

from orchestrator import opcheck
from orchestrator.config import JudgeSettings
from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge import large, sweep, testfile
from orchestrator.judge.candidate import CandidateFailed
from orchestrator.ops import Op
from orchestrator.ops.parts import Large
from orchestrator.records import Fate, Judging, Status, to_json
from orchestrator.redteam.entries import CORPUS
from orchestrator.tree import lay_out
from orchestrator.verifying import KernelFile, verify
from tests.conftest import DEVICE, MakeJob, zoo_kernel
from tests.test_op_format import Silent


def with_large(op: Op, **changes: Any) -> Op:
    """The op, with a large case that is none."""
    asked = {"shape": (70, 33), "dtype": "float16", "along": "M"} | changes
    sweep = op.spec.sweep.model_copy(update={"large": Large.model_validate(asked)})
    return Op(op.folder, op.spec.model_copy(update={"sweep": sweep}), op.reference)


@contextmanager
def loaded(op: Op, folder: Path, change: Callable[[torch.Tensor], Any]) -> Iterator[ModuleType]:
    """The op's test file, with its reference as the kernel, whose result is changed."""
    lay_out(op.workspace_files(), folder)
    kernel = ModuleType("rmsnorm_triton")
    kernel.rmsnorm_triton = lambda **arguments: change(test.rmsnorm_ref(**arguments))  # type: ignore[attr-defined]
    with testfile.loaded(folder, kernel) as test:
        yield test


def figures(op: Op, folder: Path, change: Callable[[torch.Tensor], Any]) -> dict[str, Any]:
    with loaded(op, folder, change) as test:
        (case,) = test.large()
        return large.figures(test, case, test.make_inputs(case, "cpu", 1))


def last_row_wrong(right: torch.Tensor) -> torch.Tensor:
    right[-1] += 1
    return right


def test_every_part_is_compared_and_the_place_is_that_in_the_whole(rmsnorm: Op, tmp_path: Path) -> None:
    right = figures(with_large(rmsnorm), tmp_path / "right", lambda result: result)
    assert (right["status"], right["elements"], right["wrong"]) == (Status.PASSED, 70 * 33, 0)
    wrong = figures(with_large(rmsnorm), tmp_path / "wrong", last_row_wrong)
    assert (wrong["status"], wrong["elements"], wrong["wrong"]) == (Status.WRONG_VALUES, 70 * 33, 33)
    assert wrong["first_wrong"][0].index == (69, 0) and "from M 69 on" in wrong["detail"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda right: right[:-1], Status.WRONG_SHAPE),
        (lambda right: right.float(), Status.WRONG_DTYPE),
        (lambda right: (right,), Status.WRONG_SHAPE),
    ],
)
def test_the_whole_result_has_the_shape_that_is_promised(
    rmsnorm: Op, tmp_path: Path, change: Callable[[torch.Tensor], Any], status: Status
) -> None:
    with pytest.raises(CandidateFailed) as failed:
        figures(with_large(rmsnorm), tmp_path / "op", change)
    assert failed.value.status is status


def test_it_is_for_the_full_sweep_on_a_gpu_and_else_said_to_be_left_out(rmsnorm: Op, tmp_path: Path) -> None:
    with loaded(rmsnorm, tmp_path / "op", lambda result: result) as test:
        assert large.cases(test, quick=True) == []
        (case,) = large.cases(test, quick=False)
        assert (
            large.left_out(case, "no GPU")
            == "left out: float16-M2097155xN1024-scale1, which takes 69 GB on a GPU (no GPU)"
        )
        assert large.is_large(case) and not any(large.is_large(one) for one in test.cases())
        assert case.dims["M"] * case.dims["N"] > 2**31


def judged(op: Op, kernel: bytes, make_job: MakeJob, folder: Path) -> Any:
    """The verdict by a judge with a stand-in for the card's memory."""
    job = folder / "job.json"
    job.write_text(to_json(make_job(kernel, op=with_large(op), quick=False)))
    command = [sys.executable, str(Path(__file__).with_name("judged_large.py")), str(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_memory_that_the_candidate_keeps_leaves_no_case_out(
    small_rmsnorm: Op, make_job: MakeJob, tmp_path: Path
) -> None:
    good = judged(small_rmsnorm, zoo_kernel("good") + b"print('imported')\n", make_job, tmp_path)
    assert good["status"] == "PASSED" and good["notes"] == [], good
    assert good["cases"][-1].startswith("float16-M70xN33") and len(good["cases"]) == good["expected_cases"]
    assert good["output"].count("imported") == 2, "another process, and what both print is kept"


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ("if M == 70:\n        _kernel[(M,)](x, w, y, N, 9.0, BLOCK=64)\n    return y", "WRONG_VALUES"),
        ("return y if M < 70 else 1 / 0", "RUNTIME_ERROR"),
        ("return y if M < 70 else __import__('time').sleep(99)", "TIMEOUT"),
        ("return y if M < 70 else torch.manual_seed(M) and y", "FORBIDDEN"),
    ],
)
def test_what_the_candidate_does_in_the_large_case_is_its_own(
    small_rmsnorm: Op, make_job: MakeJob, tmp_path: Path, after: str, status: str
) -> None:
    kernel = zoo_kernel("good").replace(b"return y", after.encode())
    assert judged(small_rmsnorm, kernel, make_job, tmp_path)["status"] == status


class Unending:
    """A candidate whose warden has died."""

    pieces = ()

    def attach(self) -> None:
        raise CandidateFailed(Status.CRASHED, "it died")

    def end(self) -> None:
        raise JudgeError("the fork server died")


def test_the_turn_is_given_back_where_the_candidate_cannot_be_ended(make_job: MakeJob) -> None:
    left: list[bool] = []
    means: Any = sweep.Means(
        Judging("no card", True, {}, ()),
        lambda kernel: Unending(),  # type: ignore[arg-type, return-value]
        room=SimpleNamespace(leave=lambda: left.append(True)),  # type: ignore[arg-type]
    )
    with pytest.raises(JudgeError, match="the fork server died"):
        sweep.judge(make_job(zoo_kernel("good")), means)
    assert left


@pytest.mark.asyncio(loop_scope="session")
async def test_parts_that_depend_on_each_other_are_refused(judge: LocalExecutor, rmsnorm: Op) -> None:
    result = await opcheck.check(with_large(rmsnorm, along="N"), judge)
    (broken,) = result.decoys
    assert broken.fate is Fate.BROKEN and "depend on each other along N" in broken.detail


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU with 90 GB")
@pytest.mark.asyncio(loop_scope="session")
async def test_judges_of_one_card_take_turns(judge: LocalExecutor, rmsnorm: Op, tmp_path: Path) -> None:
    """The memory holds one large case: a second judge that did not wait would leave its own out, or fail."""
    settings = JudgeSettings(device="gpu", quick=False)
    others = [LocalExecutor("gpu", tmp_path / f"{number}.log") for number in range(2)]
    files = [KernelFile("good", zoo_kernel("good"))]
    try:
        found = await asyncio.gather(*(verify(files, rmsnorm, one, settings, Silent()) for one in (judge, *others)))
    finally:
        for one in others:
            await one.close()
    for report in (one[0].report for one in found):
        assert report.passed and report.cases[-1].name.startswith("float16-M2097155"), (report.message, report.notes)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU with 90 GB")
@pytest.mark.asyncio(loop_scope="session")
async def test_a_judge_gives_the_memory_back(rmsnorm: Op, tmp_path: Path) -> None:
    """8 GB of the last call lay in a ring of references, and the judges of one card waited for each other's memory."""
    files, settings = [KernelFile("good", zoo_kernel("good"))], JudgeSettings(device="gpu", quick=False)
    one = LocalExecutor("gpu", tmp_path / "judge.log", judges=2)
    try:
        found = await verify(files, rmsnorm, one, settings, Silent())
        kept = memory_of(one.pid)
    finally:
        await one.close()
    assert found[0].report.cases[-1].name.startswith("float16-M2097155"), found[0].report.notes
    assert kept < 6 << 30, f"{kept >> 20} MiB"


def memory_of(pid: int | None) -> int:
    """Bytes of GPU memory that a process has."""
    pynvml.nvmlInit()
    try:
        cards = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        every = [one for card in cards for one in pynvml.nvmlDeviceGetComputeRunningProcesses(card)]
        return sum(one.usedGpuMemory for one in every if one.pid == pid)
    finally:
        pynvml.nvmlShutdown()


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU with 90 GB")
@pytest.mark.asyncio(loop_scope="session")
async def test_offsets_of_32_bits_fail_beyond_them(judge: LocalExecutor, rmsnorm: Op) -> None:
    files = [
        KernelFile("good", zoo_kernel("good")),
        KernelFile("offsets_int32", (CORPUS / "cheats" / "offsets_int32.py").read_bytes()),
        KernelFile("c203", (CORPUS / "given" / "cheats" / "c203_int32_offsets.py").read_bytes()),
        KernelFile("again", zoo_kernel("good")),
    ]
    found = await verify(files, rmsnorm, judge, JudgeSettings(device="gpu", quick=False), Silent())
    good, *wrong, again = [one.report for one in found]
    assert good.passed and again.passed and good.cases[-1].name.startswith("float16-M2097155"), good.message
    for report in wrong:
        assert not report.passed and report.cases[-1].dims["M"] == 2097155, report.message
        assert all(case.passed for case in report.cases[:-1])
