"""Every kernel of the zoo ends in the Status its first line names, and the judge is as good as new afterwards.

The policy is not asked: these files are there to meet the judge.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Limits, OpCheckJob, Status, to_json
from tests.conftest import DEVICE, ZOO, MakeJob, visible, zoo_kernel
from tests.test_pool import MEASURE

pytestmark = pytest.mark.asyncio(loop_scope="session")
KERNELS = [path for path in sorted((ZOO / "kernels").glob("*.py")) if visible(path)]


def _expected(kernel: Path) -> set[Status]:
    match = re.search(r"\| expect: (.+)", kernel.read_text().splitlines()[0])
    assert match, f"{kernel} says no expected status in its first line"
    return {Status(name) for name in match[1].split(" | ")[0].split(" or ")}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.stem)
async def test_zoo(judge: LocalExecutor, make_job: MakeJob, kernel: Path) -> None:
    report = await judge.judge(make_job(kernel.read_bytes()))
    assert report.status in _expected(kernel), f"{report.message}\n{report.detail}\n{report.output}"
    assert report.message


async def test_the_judge_is_usable_after_each_kind_of_death(
    judge: LocalExecutor, make_job: MakeJob, small_rmsnorm: Op
) -> None:
    deaths = ["exits_at_call", "segfaults", "hangs", "allocates_without_end", "fork_bomb", "writes_the_channel"]
    if DEVICE == "gpu":
        deaths = ["illegal_address", "device_assert", "endless_kernel", "gpu_out_of_memory", *deaths]
    for name in deaths:
        await judge.judge(
            make_job(
                zoo_kernel(name),
                limits=Limits(call_s=1, compile_s=5, memory_mb=512 if DEVICE == "cpu" else 4096, processes=16),
            )
        )
        after = await judge.judge(make_job(zoo_kernel("good"), op=small_rmsnorm))
        assert after.status is Status.PASSED, f"after {name}: {after.message}"


async def test_a_pass_has_every_case_and_the_holdouts(judge: LocalExecutor, make_job: MakeJob) -> None:
    job = make_job(zoo_kernel("good"), quick=None)
    report = await judge.judge(job)
    assert report.nonce == job.nonce
    drawn = [case for case in report.cases if case.holdout]
    listed = 72 + 1 if DEVICE == "gpu" else 45  # and one whose offsets pass 2^31
    assert report.expected_cases == len(report.cases) == listed + 34 + len(drawn)
    assert len(drawn) == (11 + 8 if DEVICE == "gpu" else 10 + 3), "from the ranges, and at sizes that the file names"
    assert {case.dims["N"] for case in drawn} >= {131072}, "the loop over N is always asked for"
    assert any(case.parameters["eps"] != 1e-6 for case in drawn), "another eps is asked for"
    assert report.interpreted is (DEVICE == "cpu")
    assert report.sandbox


async def test_values_are_fresh_unless_the_seed_is_given(judge: LocalExecutor, make_job: MakeJob) -> None:
    first, second, repeated = [
        await judge.judge(make_job(zoo_kernel("divides_by_block"), seed=seed)) for seed in (None, None, None)
    ]
    again = await judge.judge(make_job(zoo_kernel("divides_by_block"), seed=first.seed))
    assert len({first.seed, second.seed, repeated.seed}) == 3
    strip = [replace(case, seconds=0) for case in first.cases]
    assert [replace(case, seconds=0) for case in again.cases] == strip
    assert [replace(case, seconds=0) for case in second.cases] != strip


async def test_the_report_says_what_failing_cases_have_in_common(judge: LocalExecutor, make_job: MakeJob) -> None:
    report = await judge.judge(make_job(zoo_kernel("divides_by_block")))
    assert any("no power of two" in sentence for sentence in report.diagnosis), report.diagnosis
    wrong = next(case for case in report.cases if not case.passed)
    assert wrong.first_wrong and wrong.max_rel and wrong.tolerance_ratio and wrong.tolerance_ratio > 1


async def test_an_error_shows_the_kernel_line_and_stays_text(judge: LocalExecutor, make_job: MakeJob) -> None:
    report = await judge.judge(make_job(zoo_kernel("does_not_compile")))
    assert "undefined_name" in report.cases[0].detail or "power of 2" in report.cases[0].detail, report.cases[0].detail
    assert "rmsnorm_triton.py" in report.cases[0].detail
    raised = await judge.judge(make_job(zoo_kernel("raises")))
    assert raised.status is Status.RUNTIME_ERROR and "PASSED: 78" in raised.cases[0].detail


async def test_nothing_is_written_outside_and_nothing_survives(judge: LocalExecutor, make_job: MakeJob) -> None:
    Path("/tmp/written_by_a_candidate").unlink(missing_ok=True)
    job = make_job(zoo_kernel("writes_files"))
    before = sorted(path.name for path in Path(job.folder).iterdir())
    await judge.judge(job)
    assert not Path("/tmp/written_by_a_candidate").exists()
    assert sorted(path.name for path in Path(job.folder).iterdir()) == before


async def test_the_environment_of_judge_and_candidate_holds_no_key(
    judge: LocalExecutor, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("ANTHROPIC_API_KEY", "NVIDIA_API_KEY", "TRITON_TOKEN", "HIP_Passwd", "NVIDIA_ANYTHING"):
        monkeypatch.setenv(name, "planted-secret")
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "all")
    kernel = rb"""
import os
import torch


def rmsnorm_triton(x, w, eps=1e-6):
    seen = []
    with open("/proc/self/environ", "rb") as own:
        seen.append(own.read().strip(b"\0"))
    raise RuntimeError(repr(dict(os.environ)) + repr(seen))
"""
    executor = LocalExecutor(DEVICE, tmp_path / "judge.log")
    try:
        report = await executor.judge(make_job(kernel))
        judges = Path(f"/proc/{executor.pid}/environ").read_bytes()
    finally:
        await executor.close()
    assert b"NVIDIA_VISIBLE_DEVICES=all" in judges and b"planted-secret" not in judges
    assert report.status is Status.RUNTIME_ERROR
    assert "TRITON_CACHE_DIR" in report.cases[0].detail, "the candidate did look"
    assert "planted-secret" not in str(report)


async def test_a_judge_that_is_killed_is_started_again(make_job: MakeJob, tmp_path: Path) -> None:
    executor = LocalExecutor(DEVICE, tmp_path / "judge.log")
    try:
        await executor.start()
        assert executor.pid is not None
        os.kill(executor.pid, 9)
        report = await executor.judge(make_job(zoo_kernel("good")))
        assert report.status is Status.PASSED
    finally:
        await executor.close()


async def test_a_judge_that_dies_while_it_is_asked_for_else_is_not_asked_again(tmp_path: Path) -> None:
    executor = LocalExecutor("cpu", tmp_path / "judge.log")
    try:
        decoys = OpCheckJob("/", "op", "k.py", "f", "r", {}, {}, {}, (), (), {}, (), {}, (), {}, {})
        for asked in (executor.measure(MEASURE, print), executor.check_op(decoys)):
            await executor.start()
            assert executor.pid is not None
            os.kill(executor.pid, 9)
            with pytest.raises(JudgeError):
                await asked
            assert executor.pid is None, "what is asked next has a judge of its own"
    finally:
        await executor.close()


@pytest.mark.root
async def test_a_full_disk_is_not_the_candidates_fault(judge: LocalExecutor, make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job(zoo_kernel("fills_the_disk"))
    scratch = Path(job.folder) / "scratch"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(scratch)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no filesystem can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        report = await judge.judge(job)
    finally:
        subprocess.run(["umount", str(scratch)], check=True)
    assert report.status is Status.INFRASTRUCTURE
    assert "is full" in report.cases[0].detail


async def test_whether_triton_interprets_is_the_judges_to_decide(
    make_job: MakeJob, small_rmsnorm: Op, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A person may have TRITON_INTERPRET set; inherited, it would keep launches from being compiled."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    executor = LocalExecutor(DEVICE, tmp_path / "judge.log")
    try:
        report = await executor.judge(make_job(zoo_kernel("good"), op=small_rmsnorm))
    finally:
        await executor.close()
    assert report.status is Status.PASSED, report.message
    assert report.interpreted is (DEVICE == "cpu")
    targets = {one.target for one in report.compiled if one.registers and one.load_bits}
    assert targets == ({"sm_80", "sm_90", "gfx942"} if report.interpreted else set()), "what it launched, compiled"


@pytest.mark.skipif(DEVICE == "gpu", reason="on a GPU a kernel is compiled where it runs")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is no core to compile on")
async def test_what_was_launched_is_compiled_beside_the_cases(make_job: MakeJob, tmp_path: Path) -> None:
    script, cores = Path(__file__).with_name("judged_beside.py"), os.cpu_count() or 1
    compiled = {}
    for judges in (1, cores):
        new = zoo_kernel("good") + f"# {secrets.token_hex(8)}\n".encode()
        job = tmp_path / f"job-{judges}.json"
        job.write_text(to_json(make_job(new, quick=None)))
        command = [sys.executable, str(script), str(job), str(judges)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["status"] == Status.PASSED, found["message"]
        compiled[judges] = found["compiled"]
    assert compiled[1], "some of its launches"
    assert not compiled[cores], "where every core has a judge there is none for it"
