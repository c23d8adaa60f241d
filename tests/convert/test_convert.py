"""Code becomes an op: cut, run in the probe, varied, and good enough for `ops check`. Real probe, real judge."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from orchestrator import config, opcheck, verifying
from orchestrator.convert import Wanted, convert, examples, extract, tracing
from orchestrator.convert.examples import Examples
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Fate, OpCheck, Status
from orchestrator.verifying import KernelFile
from tests.test_cli import orchestrator
from tests.test_verifying import Told

pytestmark = pytest.mark.asyncio(loop_scope="session")
GIVEN = Path(__file__).parent / "given"


async def converted(
    judge: LocalExecutor,
    root: Path,
    name: str,
    found: Examples | None = None,
    op: str = "",
    like: tuple[Path, ...] = (),
) -> tuple[Op, OpCheck]:
    target = extract.parse(f"{GIVEN}/{name}")
    wanted = Wanted(target, found or Examples(), root / (op or target.op), like)
    (made,) = await convert(wanted, lambda _: None, lambda op: opcheck.check(op, judge))
    return made.op, made.check


def refused(result: OpCheck) -> list[str]:
    return [one.name for one in result.counted if one.fate is not Fate.REJECTED]


async def test_a_class_with_buffers_becomes_an_op_that_catches_every_decoy(
    judge: LocalExecutor, tmp_path: Path
) -> None:
    before = (GIVEN / "normed.py").read_bytes()
    house = GIVEN.parent / "kernels" / "standardised.py"
    op, result = await converted(judge, tmp_path, "normed.py:Standardised", like=(house,))
    assert op.like == {"standardised.py": house.read_text()}
    assert not refused(result) and len(result.counted) > 15
    assert list(op.spec.inputs) == ["x", "weight", "mean", "var"] and op.spec.entry_checks
    assert {one.shape for one in op.spec.inputs.values()} == {("M", "N"), ("N",)}
    assert {shape[0] for shape in op.spec.sweep.holdout.always} == {0, 3}, "both dims may be empty"
    assert "abs_()" in op.reference, "a variance stays positive"
    record = (op.folder / "CONVERTED.md").read_text()
    assert "eval mode" in record and "export standardised" in record
    assert (GIVEN / "normed.py").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["standardised"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "example", "dims", "fixed"),
    [
        ("attention.py:Attention", "", ("B", "T", "C"), "C is from 4 in steps of 4"),
        ("functions.py:logsumexp", "logsumexp.yaml", ("M", "N"), "N is from 1"),
        ("functions.py:selective_scan", "scan.yaml", ("K", "T", "L", "E"), "T is from 1"),
        ("refused.py:doubled", "", ("M", "N"), "Do not write to the inputs but x"),
    ],
)
async def test_sizes_are_told_apart_and_varied(
    judge: LocalExecutor, tmp_path: Path, name: str, example: str, dims: tuple[str, ...], fixed: str
) -> None:
    op, result = await converted(judge, tmp_path, name, examples.read(GIVEN / example) if example else None)
    assert not refused(result), refused(result)
    assert op.spec.dims == dims and any(fixed in one for one in op.spec.constraints)
    assert op.spec.tolerance["float32"].atol < 1e-4


async def test_a_script_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with pytest.raises(UsageError, match="took more than 1 s"):
        tracing.traced(
            f"sh -c 'sleep 20 & echo $! > {noted}; sleep 21'",
            extract.parse(f"{GIVEN}/normed.py:Standardised"),
            limit_s=1.0,
        )
    command_line = Path("/proc") / noted.read_text().strip() / "cmdline"
    for _ in range(50):
        if not command_line.exists() or not command_line.read_bytes():  # nobody may have waited for it yet
            return
        time.sleep(0.1)
    raise AssertionError("it runs on")


@pytest.mark.long
async def test_calls_of_a_script_are_examples_and_its_process_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-to-be-seen")
    script = tmp_path / "script.py"
    looks = "assert 'ANTHROPIC_API_KEY' not in os.environ"
    script.write_text(f"import os, sys\nsys.path.insert(0, {str(GIVEN)!r})\n{looks}\nimport run\n")
    found = tracing.traced(f"{sys.executable} {script}", extract.parse(f"{GIVEN}/normed.py:Standardised"))
    assert [call["tensors"]["x"]["shape"] for call in found.calls] == [[3, 24], [5, 24]]
    assert not found.calls[0]["tensors"]["x"]["contiguous"] and found.init == {"width": 24, "eps": 1e-05, "p": 0.1}
    with pytest.raises(UsageError, match="never called"):
        tracing.traced(f"{sys.executable} -c pass", extract.parse(f"{GIVEN}/normed.py:Standardised"))
    with pytest.raises(UsageError, match="exit code 1: AssertionError: no"):
        tracing.traced(f"{sys.executable} -c 'assert 0, \"no\"'", extract.parse(f"{GIVEN}/normed.py:Standardised"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "example", "kernel"),
    [
        ("normed.py:Standardised", "", "standardised"),
        ("functions.py:logsumexp", "logsumexp.yaml", "functions_logsumexp"),
        ("functions.py:selective_scan", "scan.yaml", "selective_scan"),
    ],
)
async def test_an_honest_kernel_of_a_converted_op_passes_and_a_wrong_one_does_not(
    judge: LocalExecutor, tmp_path: Path, name: str, example: str, kernel: str
) -> None:
    """The tolerances are measured: they must leave an honest kernel room, and a forgotten term none."""
    found = examples.read(GIVEN / example) if example else None
    op, _ = await converted(judge, tmp_path, name, found, kernel)
    file = GIVEN.parent / "kernels" / f"{kernel}.py"
    wrong = (
        file.read_bytes()
        .replace(b"+ peak)", b")")
        .replace(b"* w\n", b"\n")
        .replace(b" + x * skip", b"")
        .replace(b" * scale,", b",")
    )
    assert wrong != file.read_bytes()
    files = (KernelFile("right", file.read_bytes()), KernelFile("wrong", wrong))
    right, other = await verifying.verify(files, op, judge, config.load().judge, Told())
    assert right.report.status is Status.PASSED, right.report.message
    assert not right.report.notes and max(case.precision or 0 for case in right.report.cases) < op.spec.precision / 2
    assert other.report.status is Status.WRONG_VALUES


def refused_by_the_command(folder: Path, said: str, *arguments: str) -> None:
    """One line that says so, exit code 2, and nothing left behind."""
    result = orchestrator(folder, "convert", *arguments, "--agent", "recorded", "--device", "cpu")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1) and said in result.stderr, result.stderr
    assert not list(folder.iterdir())


async def test_nothing_is_written_where_something_is_missing(tmp_path: Path) -> None:
    refused_by_the_command(tmp_path, "did you mean Attention", f"{GIVEN}/attention.py:Atention")
    refused_by_the_command(tmp_path, "depends on the values", f"{GIVEN}/refused.py:distinct")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "said", "options"),
    [
        ("refused.py:scale", "as a function or a class", ()),
        ("refused.py:Configured", "missing a required argument: 'width'", ()),
        ("refused.py:Counts", "a call writes into its own calls", ()),
        ("refused.py:Averages", "a call writes into its own mean", ()),
        ("refused.py:random", "it is random", ()),
        ("refused.py:seeded", "it is random", ()),
        ("refused.py:by_value", "depends on the values", ()),
        ("refused.py:doubled", "return a new tensor, or convert it without --backward", ("--backward", "checkpoint")),
        ("normed.py:Standardised", "there is no such file or folder", ("--like", "nowhere")),
        ("normed.py:Standardised", "cannot be run", ("--trace", 'python "x')),
        ("normed.py:Standardised", "no conversion to standardised came as far", ("--resume",)),
        ("normed.py:Standardised", "leave --like out", ("--resume", "--like", "nowhere")),
    ],
)
async def test_each_kind_of_bad_input_is_one_line(
    tmp_path: Path, name: str, said: str, options: tuple[str, ...]
) -> None:
    refused_by_the_command(tmp_path, said, f"{GIVEN}/{name}", *options)


async def test_a_file_of_examples_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "shapes.yaml"
    for text, said in [
        ("inputs: {x: {shape: [2], dtype: int64}}", "say which, range"),
        ("inputs: {x: {shape: [2], dtype: complex64}}", "is not one of"),
        ("inputs: {x: {shpe: [2]}}", "inputs.x.shape"),
        ("inputs: {x: {shape: [2], dtype: int64, range: [9, 2]}}", "the first must be below the second"),
        ("inputs: {x: {shape: [2], range: [.nan, .inf]}}", "the first must be below the second"),
        ("{init: 3, inputs: {x: {shape: [2]}}}", "the constructor's arguments as"),
        ("", "gives no call"),
        ("{}", "gives no call"),
    ]:
        file.write_text(text)
        with pytest.raises(UsageError, match=said):
            examples.read(file)
