"""What the tests share: the op, one warm judge, and jobs made as the loop makes them."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio

from orchestrator import ops, resources
from orchestrator.executors.local import LocalExecutor
from orchestrator.ops import Op
from orchestrator.records import Job, Limits

ZOO = Path(__file__).parent / "zoo"
DEVICE = os.environ.get("ORCHESTRATOR_TEST_DEVICE", "cpu")  # gpu: the same tests on a GPU machine


@pytest.fixture(scope="session", autouse=True)
def docs_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What runs write down of Triton's language does not land in the checkout."""
    os.environ["ORCHESTRATOR_DOCS__FOLDER"] = str(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="session")
def rmsnorm() -> Op:
    """The shipped op."""
    return ops.load("rmsnorm", resources.shipped("configs") / "ops")


@pytest.fixture(scope="session")
def small_rmsnorm(rmsnorm: Op) -> Op:
    """The shipped op with a sweep of a few cases, for tests of what happens in a call rather than of the sweep."""
    sweep = rmsnorm.spec.sweep
    few = sweep.holdout.model_copy(update={"count": 2, "always": ()})
    update = {
        "telling": None,
        "shapes": ((3, 127), (5, 128)),
        "dtypes": ("float32", "bfloat16"),
        "scales": (1e-3, 1.0),
        "holdout": few,
    }
    spec = rmsnorm.spec.model_copy(update={"sweep": sweep.model_copy(update=update)})
    return Op(rmsnorm.folder, spec, rmsnorm.reference)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def judge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalExecutor]:
    """One judge process for all tests that judge: a verdict must not depend on the one before."""
    executor = LocalExecutor(DEVICE, tmp_path_factory.mktemp("judge") / "judge.log")
    yield executor
    await executor.close()


@pytest.fixture(scope="session")
def kill_batches() -> ModuleType:
    """The script, whose small batch several tests carry out."""
    script = Path(__file__).parent.parent / "benchmarks" / "kill_batches.py"
    spec = importlib.util.spec_from_file_location("kill_batches", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(rmsnorm: Op, tmp_path: Path) -> MakeJob:
    """A job folder for a kernel's bytes, with short limits; keyword arguments change the job."""

    def make(kernel: bytes, limits: Limits | None = None, op: Op = rmsnorm, **changes: object) -> Job:
        folder = tmp_path / f"job-{secrets.token_hex(4)}"
        (folder / "scratch").mkdir(parents=True)
        for name, data in {**op.workspace_files(), op.spec.kernel_name: kernel}.items():
            (folder / name).write_bytes(data)
        job = Job(
            id="test",
            nonce=secrets.token_hex(8),
            folder=str(folder),
            op=rmsnorm.name,
            kernel=rmsnorm.spec.kernel_name,
            function=rmsnorm.spec.function,
            arguments=tuple(rmsnorm.spec.inputs),
            parameters=rmsnorm.spec.parameters,
            quick=True,
            limits=limits
            or Limits(
                import_s=20,
                call_s=5,
                compile_s=8 if DEVICE == "cpu" else 30,  # compiling ahead of rows in one block takes all it is given
                total_s=60,
                memory_mb=1024 if DEVICE == "cpu" else 4096,
                processes=16,
                scratch_mb=64,
            ),
        )
        return replace(job, **changes)  # type: ignore[arg-type]

    return make


def visible(kernel: Path) -> bool:
    """Whether what a file of the zoo shows can be seen on this device; its first line says what it needs."""
    needs = re.search(r"\| needs: (\w+)", kernel.read_text().splitlines()[0])
    return needs is None or needs[1] == DEVICE


def zoo_kernel(name: str) -> bytes:
    """A kernel of tests/zoo/kernels."""
    return (ZOO / "kernels" / f"{name}.py").read_bytes()
