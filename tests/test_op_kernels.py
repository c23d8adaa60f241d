"""For each shipped op an honest kernel passes."""

from __future__ import annotations

import pytest

from orchestrator import ops, resources
from orchestrator.config import JudgeSettings
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Status
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


async def judged(op: Op, judge: LocalExecutor) -> None:
    kernel = (ZOO / "ops" / f"{op.name}.py").read_bytes()
    (result,) = await verify([KernelFile(op.name, kernel)], op, judge, JudgeSettings(device=DEVICE), Silent())
    report = result.report
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
