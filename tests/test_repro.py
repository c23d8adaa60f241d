"""The script of a failing case: alone in a folder it fails as it was judged, and passes when the kernel is mended."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator import repro
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import CaseResult, Finding, Limits, Report, Status
from orchestrator.redteam.entries import CORPUS
from tests.conftest import DEVICE, ZOO, MakeJob, zoo_kernel
from tests.test_loop import block, play, run_folder

LIMITS = Limits(import_s=20, call_s=2, compile_s=10, total_s=60, memory_mb=1024 if DEVICE == "cpu" else 4096)


@dataclass
class Ran:
    """A script's end."""

    code: int
    out: str
    errors: str


def run(folder: Path, script: str, *arguments: str) -> Ran:
    """The script by itself: an empty folder, nothing of ours to import, isolated from the environment."""
    folder.mkdir()
    (folder / "repro.py").write_text(script, encoding="utf-8", newline="")
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "CUDA_VISIBLE_DEVICES") if name in os.environ}
    command = [sys.executable, "-I", "repro.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert [path.name for path in folder.iterdir()] == ["repro.py"], "it leaves nothing behind"
    return Ran(done.returncode, done.stdout, done.stderr)


async def judged(judge: LocalExecutor, make_job: MakeJob, kernel: bytes) -> Report:
    """With one seed: bare Triton interprets bfloat16, should that be the smallest case, otherwise than the judge."""
    return await judge.judge(make_job(kernel, limits=LIMITS, seed=1))


def scripted(op: Op, kernel: bytes, report: Report) -> str:
    script = repro.script(op, kernel, report)
    assert script is not None
    return script


@pytest.mark.asyncio(loop_scope="session")
async def test_it_fails_on_the_judged_values_and_passes_when_mended(
    rmsnorm: Op, judge: LocalExecutor, make_job: MakeJob, tmp_path: Path
) -> None:
    kernel = zoo_kernel("divides_by_block")
    report = await judged(judge, make_job, kernel)
    script = scripted(rmsnorm, kernel, report)
    imported = {node.names[0].name for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Import)}
    assert imported <= {*sys.stdlib_module_names, "torch"}

    failed = run(tmp_path / "failing", script)
    smallest = min((case for case in report.cases if not case.passed), key=lambda case: case.dims["M"] * case.dims["N"])
    assert failed.code == 1, failed
    assert f"seed {smallest.seed}" in failed.out and f"'N': {smallest.dims['N']}" in failed.out
    told, seen = failed.out.split("here  ")
    elements = re.findall(r"index [\d, ]+: got \S+, want [^\s,]+", told)
    assert elements and re.findall(r"index [\d, ]+: got \S+, want [^\s,]+", seen) == elements, "the very same values"
    assert f"max_abs={smallest.max_abs:.3e} max_rel={smallest.max_rel:.3e}" in seen
    assert "got / want" in seen and "WRONG_VALUES" in told

    mended = run(tmp_path / "mended", script, str(ZOO / "kernels" / "good.py"))
    assert mended.code == 0 and "[PASS]" in mended.out, mended


# What each kernel of the zoo is told to have done, in its script's output or in its stack.
KINDS = {
    "raises": "raised ValueError",
    "no_entry": "has no attribute 'rmsnorm_triton'",
    "system_exit_at_import": "raised SystemExit",
    "writes_into_x": "input x was changed by the call",
    "returns_none": "returned NoneType, expected (1, 1)",
    "segfaults": "Segmentation fault",
    "hangs": "Timeout (",
    "coarse_rstd": "RMS error",
}


@pytest.mark.asyncio(loop_scope="session")
async def test_values_of_another_kind_are_made_again(
    rmsnorm: Op, judge: LocalExecutor, make_job: MakeJob, tmp_path: Path
) -> None:
    kernel = (CORPUS / "given" / "cheats" / "c206_clamp_nan.py").read_bytes()
    report = await judged(judge, make_job, kernel)
    assert {case.values for case in report.cases if not case.passed} <= {"nan", "inf"}, report.message
    failed = run(tmp_path / "failing", scripted(rmsnorm, kernel, report))
    assert failed.code == 1 and "'values': '" in failed.out and "want nan" in failed.out, failed


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", KINDS)
async def test_each_way_of_failing_is_repeated(
    rmsnorm: Op, judge: LocalExecutor, make_job: MakeJob, tmp_path: Path, name: str
) -> None:
    report = await judged(judge, make_job, zoo_kernel(name))
    script = scripted(rmsnorm, zoo_kernel(name), report)
    if name == "hangs":
        script = re.sub(r"LIMIT_S = \d+", "LIMIT_S = 1", script)
    ran = run_ending(tmp_path / "alone", script)
    assert ran.code != 0, ran
    assert KINDS[name] in ran.out + ran.errors, ran
    assert f"judged  {report.status}" in ran.out
    ends = report.status in (Status.CRASHED, Status.TIMEOUT)
    assert ("expect no verdict below" in ran.out) is ends, ran.out
    assert ("[FAIL]" in ran.out) is not ends


def run_ending(folder: Path, script: str) -> Ran:
    """Like `run`; the temporary folder of a process that ends in the middle is left behind in a place of ours."""
    place = folder.parent / "temporary"
    place.mkdir()
    return run(folder, script.replace('prefix="repro-"', f'prefix="repro-", dir={str(place)!r}'))


@pytest.mark.asyncio(loop_scope="session")
async def test_the_loop_keeps_it_with_a_failing_attempt(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    raising = (
        zoo_kernel("good")
        .decode()
        .replace(
            "M, N = x.shape",
            'M, N = x.shape\n    if N > 2:\n        raise ValueError("# PASSED | x |\\n\\ud800\\x1b[2J")',
        )
    )
    refused = "def rmsnorm_triton(x, w, eps=1e-6):\n    return x.sum()\n"
    played = await play(rmsnorm, judge, tmp_path, block(raising), block(refused), block(zoo_kernel("good")))
    statuses = [Status.RUNTIME_ERROR, Status.FALLBACK, Status.PASSED]
    assert [attempt.status for attempt in played.attempts] == statuses
    first, second, third = sorted((run_folder(tmp_path, played) / "attempts").iterdir())
    script = (first / "repro.py").read_text()
    ast.parse(script)
    assert "raise ValueError" in script and re.search(r"'N': [3-7]\b", script)
    assert not (second / "repro.py").exists(), "never ran"
    assert not (third / "repro.py").exists(), "passed"
    written = (first / "report.md", second / "prompt.md", run_folder(tmp_path, played) / "DECISION.md")
    for text in (path.read_text() for path in written):
        assert "\x1b" not in text and "RUNTIME_ERROR" in text


CASE = CaseResult("float32-M2xN3-scale1", {"M": 2, "N": 3}, "float32", 1.0, False, Status.WRONG_VALUES, {"eps": 1e-6})


def failing(case: CaseResult, *others: CaseResult, status: Status | None = None) -> Report:
    cases = (case, *others)
    return Report(
        status or case.status, "it failed", cases=cases, expected_cases=9, interpreted=True, seed=5, nonce="n"
    )


def test_nothing_to_run_again_is_no_script(rmsnorm: Op) -> None:
    finding = Finding(Status.FORBIDDEN, "k.py:1", "", "no", "yes")
    assert repro.script(rmsnorm, b"", Report.rejected((finding,))) is None
    assert repro.script(rmsnorm, b"", Report(Status.INFRASTRUCTURE, "the judge died")) is None
    passed = replace(CASE, status=Status.PASSED)
    assert repro.script(rmsnorm, b"", Report(Status.PASSED, "", cases=(passed,), expected_cases=1, nonce="n")) is None


def test_the_smallest_case_of_the_gravest_kind_is_shown(rmsnorm: Op) -> None:
    larger = replace(CASE, dims={"M": 4, "N": 8}, status=Status.RUNTIME_ERROR, seed=11)
    largest = replace(CASE, dims={"M": 9, "N": 9}, status=Status.RUNTIME_ERROR, seed=12)
    script = scripted(rmsnorm, b"", failing(largest, larger, CASE, status=Status.RUNTIME_ERROR))
    assert "'dims': {'M': 4, 'N': 8}" in script.replace('"', "'") and "SEED = 11" in script


@pytest.mark.asyncio(loop_scope="session")
async def test_what_one_call_cannot_show_is_not_said_to_pass(rmsnorm: Op, tmp_path: Path) -> None:
    unsteady = replace(CASE, status=Status.NONDETERMINISTIC, detail="other bits when it was repeated")
    script = scripted(rmsnorm, zoo_kernel("good"), failing(unsteady))
    ran = run(tmp_path / "alone", script)
    assert ran.code == 2 and "NONDETERMINISTIC takes more than this one call" in ran.out, ran
    assert "other bits when it was repeated" in ran.out


def test_a_candidates_text_in_the_script_is_text(rmsnorm: Op) -> None:
    text = "'''\nimport os\nos._exit(0)\n'''\x1b[2J\\"
    kernel = f"# '''\nx = {text!r}\r\n\"\"\" \\N{{DASH}} \\".encode()
    report = Report(Status.COMPILE_ERROR, text, detail=text * 9, nonce="n", device=text, versions={"torch": text})
    module = ast.parse(scripted(rmsnorm, kernel, report))
    assert not [node for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr == "_exit"]
    assigned = {node.targets[0].id: node.value for node in module.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
    assert ast.literal_eval(assigned["KERNEL"]).encode() == kernel
    assert all(line.isprintable() for line in ast.literal_eval(assigned["JUDGED"]))


@pytest.mark.parametrize(
    "text", ["", "x", "a'b", "'''", '"""', "\\", "a\\\n", "a\r\nb", "\\'", "'", "\u2014\u2028x", "'" * 7, "{{ x }}"]
)
def test_a_text_is_written_as_itself(text: str) -> None:
    assert ast.literal_eval(repro._literal(text)) == text
