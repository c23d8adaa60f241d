"""What an op may ask beside equal tensors in and one out, each with a kernel that does it and kernels that do not.

One made-up op has it all: a result in place, another of a fixed dtype, a strided input, a float32 weight whatever the
case's dtype, indices, a size that is twice a dim, parameters that are no floats, and no rows at all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from orchestrator import opcheck, ops, repro
from orchestrator.config import JudgeSettings
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Fate, Report, Status
from orchestrator.verifying import KernelFile, verify
from tests.test_ops import run
from tests.test_repro import run as run_script

pytestmark = pytest.mark.asyncio(loop_scope="session")

YAML = """
name: mix
title: Everything an op may ask
entry: mix_triton(x, acc, table, w, index, negate=False, mode="once", shift=1)
dims: [M, N]
inputs:
  x: {shape: [M, N], scaled: true, strided: true}
  acc: {shape: [M, N]}
  table: {shape: [M, 2 * N]}
  w: {shape: [N], dtype: float32}
  index: {shape: [M], dtype: int32, range: [0, 2 * N]}
parameters: {negate: false, mode: once, shift: 1}
outputs:
  total: {shape: [M, N], dtype_of: acc, in_place: acc}
  picked: {shape: [M], dtype: float32}
semantics: acc += x * w + shift, subtracted with negate, doubled with mode twice; picked = table[row, index]
constraints: []
sweep:
  shapes: [[3, 5], [0, 4]]
  dtypes: [float16]
  scales: [1.0]
  quick: {M: 64, N: 64}
  telling: {shape: [5, 13], values: [sliced, transposed, nan], parameters: {negate: true, mode: twice, shift: 3}}
  holdout: {count: 1, ranges: {M: [1, 9], N: [1, 40]}}
tolerance:
  float32: {rtol: 1.0e-5, atol: 1.0e-5}
  float16: {rtol: 2.0e-3, atol: 2.0e-3}
precision: 4.0
equivalent_decoys: {arithmetic in half precision: what is rounded once more stays within the tolerance}
bench: {shapes: [[64, 96]], dtypes: [float32], bytes: M * N * itemsize, flops: M * N}
"""

REFERENCE = '''
import torch


def mix_ref(x, acc, table, w, index, negate=False, mode="once", shift=1):
    """acc + (x · w + shift) and table[row, index]."""
    wide = torch.promote_types(x.dtype, torch.float32)
    step = (x.to(wide) * w.to(wide) + shift) * (2 if mode == "twice" else 1)
    total = (acc.to(wide) - step if negate else acc.to(wide) + step).to(acc.dtype)
    return total, table.to(wide).gather(1, index.to(torch.int64).unsqueeze(1)).squeeze(1)
'''

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, acc_ptr, out_ptr, table_ptr, w_ptr, index_ptr, picked_ptr, N, row_stride, column_stride, shift,
            NEGATE: tl.constexpr, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * row_stride + cols * column_stride, mask=mask, other=0.0).to(tl.float32)
    step = x * tl.load(w_ptr + cols, mask=mask, other=0.0) + shift
    if TWICE:
        step = 2 * step
    if NEGATE:
        step = -step
    acc = tl.load(acc_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, (acc + step).to(out_ptr.dtype.element_ty), mask=mask)
    index = tl.load(index_ptr + row)
    tl.store(picked_ptr + row, tl.load(table_ptr + row * 2 * N + index).to(tl.float32))


def mix_triton(x, acc, table, w, index, negate=False, mode="once", shift=1):
    M, N = x.shape
    out = acc
    picked = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        _kernel[(M,)](x, acc, out, table, w, index, picked, N, x.stride(0), x.stride(1), shift,
                      NEGATE=negate, TWICE=mode == "twice", BLOCK=triton.next_power_of_2(N))
    return out, picked
"""

# What is changed in the kernel, how it ends, and what is said.
FAULTS = {
    "a_tensor_beside": ("out = acc", "out = torch.empty_like(acc)", Status.WRONG_VALUES, "acc does not hold result 0"),
    "strides_ignored": ("row * row_stride + cols * column_stride", "row * N + cols", Status.WRONG_VALUES, "wrong"),
    "writes_between_rows": (
        "    index = tl.load",
        "    tl.store(x_ptr + row * row_stride + N, 0.0, mask=(row_stride > N) & (row == 0))\n    index = tl.load",
        Status.OUT_OF_BOUNDS,
        "between the rows of input x",
    ),
    "other_inputs_stay_as_they_are": (
        "    index = tl.load",
        "    tl.store(w_ptr + cols, 0.0, mask=mask)\n    index = tl.load",
        Status.INPUT_MUTATED,
        "input w",
    ),
    "negate_ignored": ("NEGATE=negate", "NEGATE=False", Status.WRONG_VALUES, "negate"),
    "mode_ignored": ('TWICE=mode == "twice"', "TWICE=False", Status.WRONG_VALUES, "mode"),
    "shift_ignored": ("x.stride(1), shift", "x.stride(1), 1", Status.WRONG_VALUES, "shift"),
    "no_rows_refused": ("    out = acc", "    assert M > 0\n    out = acc", Status.RUNTIME_ERROR, "M0"),
    "one_result": ("return out, picked", "return out", Status.WRONG_SHAPE, "a tuple of 2"),
    "picked_in_half": ("dtype=torch.float32", "dtype=x.dtype", Status.WRONG_DTYPE, "result 1"),
}


@pytest.fixture(scope="session")
def mix(tmp_path_factory: pytest.TempPathFactory) -> Op:
    root = tmp_path_factory.mktemp("ops")
    (root / "mix").mkdir()
    (root / "mix" / "op.yaml").write_text(YAML)
    (root / "mix" / "reference.py").write_text(REFERENCE)
    return ops.load("mix", root)


class Silent:
    def verifying(self, judging: object) -> None: ...
    def verifying_file(self, file: str) -> None: ...
    def verified(self, file: str, report: Report) -> None: ...


async def judged(op: Op, judge: LocalExecutor, kernel: str) -> Report:
    (result,) = await verify(
        [KernelFile("kernel.py", kernel.encode())], op, judge, JudgeSettings(device="cpu", seed=1), Silent()
    )
    return result.report


def faulty(name: str) -> str:
    right, wrong, _, _ = FAULTS[name]
    assert KERNEL.count(right) == 1
    return KERNEL.replace(right, wrong)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def honest(mix: Op, judge: LocalExecutor) -> Report:
    return await judged(mix, judge, KERNEL)


async def test_a_kernel_that_does_all_of_it_passes(honest: Report) -> None:
    assert honest.status is Status.PASSED, f"{honest.message}\n{honest.cases}"
    assert {case.dims["M"] for case in honest.cases} >= {0, 3, 5}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_kernel_that_does_one_thing_otherwise_fails_for_it(mix: Op, judge: LocalExecutor, name: str) -> None:
    report = await judged(mix, judge, faulty(name))
    _, _, status, said = FAULTS[name]
    assert report.status is status, f"{report.message}\n{report.detail}"
    assert said in f"{report.message} {report.diagnosis} {[case.name for case in report.cases if not case.passed]}"


async def test_the_op_s_checker_is_good_enough(mix: Op, judge: LocalExecutor) -> None:
    result = await opcheck.check(mix, judge)
    assert result.passed, "\n".join(opcheck.lines(result))
    how = {one.name: one.case for one in result.counted}
    assert how["negate as its default"] == "float16-M5xN13-scale1-negateTrue", "not for anything else"
    names = {one.name for one in result.decoys}
    assert {"strides of x ignored", "negate as its default", "shift as 0", "index as 0s", "zeros (picked)"} <= names


async def test_a_text_parameter_that_no_case_changes_lets_its_decoy_through(mix: Op, judge: LocalExecutor) -> None:
    sweep = mix.spec.sweep
    assert sweep.telling is not None
    telling = sweep.telling.model_copy(update={"parameters": {"negate": True, "shift": 3}})
    spec = mix.spec.model_copy(update={"sweep": sweep.model_copy(update={"telling": telling})})
    result = await opcheck.check(Op(mix.folder, spec, mix.reference), judge)
    (through,) = [one for one in result.counted if one.fate is Fate.PASSED]
    assert through.name == "mode as its default" and "none has another mode" in through.detail


async def test_the_test_file_alone_tells_them_apart(mix: Op, tmp_path: Path) -> None:
    for name, data in mix.workspace_files().items():
        (tmp_path / name).write_bytes(data)
    for kernel, passes in ((KERNEL, True), (faulty("a_tensor_beside"), False), (faulty("strides_ignored"), False)):
        (tmp_path / "mix_triton.py").write_text(kernel)
        done = run(tmp_path, "test_correctness.py", "--quick", "--holdout")
        assert (done.returncode == 0) is passes, done.stdout + done.stderr
    assert "[FAIL] float16-M5xN13-sliced" in done.stdout and "[PASS] float16-M3xN5-scale1 " in done.stdout
    spec = mix.workspace_files()["SPEC.md"].decode()
    for told in (
        "of any strides",
        "(M, 2 * N)",
        "int32, from 0 to before 2 * N",
        "written into `acc`",
        "True or False",
    ):
        assert told in spec, spec


@pytest.mark.parametrize("name", ["strides_ignored", "a_tensor_beside"])
async def test_its_repro_fails_as_judged_and_passes_when_mended(
    mix: Op, judge: LocalExecutor, tmp_path: Path, name: str
) -> None:
    script = repro.script(mix, faulty(name).encode(), await judged(mix, judge, faulty(name)))
    assert script is not None
    failed = run_script(tmp_path / "failing", script)
    assert failed.code == 1, failed
    (tmp_path / "mended.py").write_text(KERNEL)
    mended = run_script(tmp_path / "mended", script, str(tmp_path / "mended.py"))
    assert mended.code in (0, 2) and "[PASS]" in mended.out, mended


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("dtype: int32, range: [0, 2 * N]", "dtype: int32", "needs a range"),
        ("dtype: int32, range: [0, 2 * N]", "dtype: int32, range: [0, 2 * K]", "K"),
        ("dtype: int32, range: [0, 2 * N]", "dtype: int32, range: [0, len(N)]", "no plain arithmetic"),
        ("dtype_of: acc, in_place: acc", "dtype_of: acc, in_place: acd", "names no input"),
        ("dtype_of: acc, in_place: acc", "dtype_of: acc, in_place: w", "another one"),
        ("dtype_of: acc, in_place: acc", "dtype_of: acc, in_place: x", "strided"),
        ("dtype_of: acc, in_place: acc", "in_place: acc", "either dtype_of"),
        ("scaled: true, strided: true", "scaled: true", "strided: true"),
        ("ranges: {M: [1, 9], N: [1, 40]}", "ranges: {M: [1, 9]}", "no range for"),
        ("2 * N]}\n  w", "2 *]}\n  w", "no arithmetic"),
        ("shape: [M], dtype: float32}", "shape: [M], dtype: int8}", "no entry for ['int8']"),
        ("float16: {rtol: 2.0e-3", "float16: {rtol: 0", "only an integer dtype's may be 0"),
    ],
)
async def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert YAML.count(right) == 1
    (tmp_path / "mix").mkdir()
    (tmp_path / "mix" / "op.yaml").write_text(YAML.replace(right, wrong))
    (tmp_path / "mix" / "reference.py").write_text(REFERENCE)
    with pytest.raises(UsageError) as raised:
        ops.load("mix", tmp_path)
    assert said in str(raised.value) and "\n" not in str(raised.value)
