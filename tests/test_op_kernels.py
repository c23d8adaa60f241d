"""For each shipped op an honest kernel passes; kernels that are wrong where few look do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import ops, resources
from orchestrator.config import JudgeSettings
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Report, Status
from orchestrator.verifying import KernelFile, verify
from tests.conftest import DEVICE, ZOO
from tests.test_op_format import Silent

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHIPPED = resources.shipped("configs") / "ops"
KERNELS = sorted((ZOO / "ops").glob("*.py"))


def few(op: Op) -> Op:
    """The op with a few small cases of each kind."""
    sweep = op.spec.sweep
    always = tuple(shape for shape in sweep.holdout.always if max(shape) < 1000)
    telling = sweep.telling.model_copy(update={"elsewhere": {}}) if sweep.telling else None
    update = {
        "shapes": sweep.shapes[1:3],
        "scales": sweep.scales[-1:],
        "dtypes": tuple(dtype for dtype in sweep.dtypes if dtype != "float16"),
        "telling": telling,
        "holdout": sweep.holdout.model_copy(update={"count": 1, "always": always[:1]}),
    }
    return Op(op.folder, op.spec.model_copy(update={"sweep": sweep.model_copy(update=update)}), op.reference)


async def verdict(op: Op, kernel: Path, judge: LocalExecutor) -> Report:
    file = KernelFile(kernel.name, kernel.read_bytes())
    (result,) = await verify([file], op, judge, JudgeSettings(device=DEVICE), Silent())
    return result.report


async def judged(op: Op, judge: LocalExecutor) -> None:
    report = await verdict(op, ZOO / "ops" / f"{op.name}.py", judge)
    wrong = [(case.name, case.detail, case.first_wrong[:2]) for case in report.cases if not case.passed]
    assert report.status is Status.PASSED, f"{report.message}\n{report.detail}\n{wrong[:3]}"


async def test_every_op_has_its_kernel() -> None:
    assert {kernel.stem for kernel in KERNELS} | {"rmsnorm"} == set(ops.names(SHIPPED))


@pytest.mark.parametrize("name", [kernel.stem for kernel in KERNELS])
async def test_an_honest_kernel_passes(judge: LocalExecutor, name: str) -> None:
    await judged(few(ops.load(name, SHIPPED)), judge)


@pytest.mark.long
@pytest.mark.parametrize("name", [kernel.stem for kernel in KERNELS])
async def test_an_honest_kernel_passes_the_whole_sweep(judge: LocalExecutor, name: str) -> None:
    await judged(ops.load(name, SHIPPED), judge)


WHOLE = ("softmax_nan_amid_masked", "gelu_tanh_half_pairs")  # what shows them is not among the few cases
WRONG = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem in WHOLE else [])
    for path in sorted((ZOO / "wrong").glob("*.py"))
]


@pytest.mark.parametrize("kernel", WRONG)
async def test_what_is_wrong_where_few_look_is_shown(judge: LocalExecutor, kernel: Path) -> None:
    """By the kind of case that its first line names, and by no other."""
    name = next(name for name in sorted(ops.names(SHIPPED), key=len, reverse=True) if kernel.stem.startswith(name))
    op = ops.load(name, SHIPPED)
    report = await verdict(op if kernel.stem in WHOLE else few(op), kernel, judge)
    assert report.status is Status.WRONG_VALUES, report.message
    shown_by = kernel.read_text().splitlines()[0].partition("shown by: ")[2].split(",")[0]
    assert all(shown_by in case.name for case in report.cases if not case.passed)
