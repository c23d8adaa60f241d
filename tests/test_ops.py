"""An op folder is checked when it is read, and what it renders stands alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator import ops, resources
from orchestrator.decide import Thresholds
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.tree import lay_out
from tests.conftest import zoo_kernel

SHIPPED = resources.shipped("configs") / "ops"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped op, to break."""
    shutil.copytree(SHIPPED / "rmsnorm", tmp_path / "rmsnorm")
    return tmp_path / "rmsnorm"


def change(folder: Path, path: str, value: Any) -> None:
    spec = yaml.safe_load((folder / "op.yaml").read_text())
    *parents, last = path.split(".")
    inner = spec
    for part in parents:
        inner = inner[part]
    inner[last] = value
    (folder / "op.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("unknown", 1, "unknown"),
        ("sweep.shapes", [[1, 2, 3]], "dims"),
        ("sweep.shapes", [], "sweep.shapes"),
        ("sweep.dtypes", ["float8"], "sweep.dtypes"),
        ("sweep.quick", {"K": 3}, "K"),
        ("tolerance", {"float32": {"rtol": 1e-5, "atol": 1e-6}}, "bfloat16"),
        ("tolerance.float32", {"rtol": 0, "atol": 1e-6}, "rtol"),
        ("entry", "rmsnorm_triton(x)", "entry takes"),
        ("entry", "not a signature", "no signature"),
        ("bench.bytes", "M * N * os.system('x')", "os"),
        ("bench.shapes", [], "bench.shapes"),
        ("bench.curve", {"dtype": "bfloat16", "shapes": [[16]]}, "dims"),
        ("bench.shapes", [[1152, 1024]], "no power of two"),
        ("bench.baselines", {"mine": {"call": "f(x)"}}, "'f'"),
        ("bench.baselines", {"mine": {"call": "x +"}}, "no expression"),
        ("bench.baselines", {"mine": {"run": "x"}}, "bench.baselines.mine"),
        ("decision", {"margin": 0.1}, "known are margin_floor"),
        ("decision", {"margin_floor": 2}, "margin_floor"),
        ("outputs.y.dtype_of", "z", "z"),
        ("inputs.x.shape", ["M", "Q"], "Q"),
        ("sweep.telling", {"shape": [5], "values": ["rows"]}, "dims"),
        ("sweep.telling", {"shape": [5, 130], "values": ["odd"]}, "telling"),
        ("sweep.telling", {"shape": [5, 130], "parameters": {"alpha": 1.0}}, "alpha"),
        ("sweep.large", {"shape": [3, 5], "dtype": "float16", "along": "K"}, "the axis K"),
        ("sweep.large", {"shape": [3, 5], "dtype": "float64", "along": "M"}, "none of sweep.dtypes"),
        ("sweep.large", {"shape": [3], "dtype": "float16", "along": "M"}, "dims"),
        ("tags", ["none such"], "tags"),
        ("precision", 0.5, "precision"),
        ("name", "other", "must agree"),
        ("sweep.holdout.parameters", {"alpha": [1.0]}, "alpha"),
    ],
)
def test_a_wrong_op_is_refused_in_one_line(folder: Path, path: str, value: Any, said: str) -> None:
    change(folder, path, value)
    with pytest.raises(UsageError) as raised:
        ops.load("rmsnorm", folder.parent)
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("tolerence", {}, "op.yaml: tolerence is no key of an op; did you mean tolerance?"),
        ("sweep.shape", [[1, 2]], "op.yaml: sweep.shape is no key of an op; did you mean shapes?"),
        ("inputs.x.shape", ["M", "Q"], "op.yaml: inputs.x uses ['Q']; dims are ['M', 'N']"),
        (
            "tolerance",
            {"float32": {"rtol": 1e-5, "atol": 1e-6}},
            "op.yaml: tolerance: no entry for ['bfloat16', 'float16']",
        ),
        ("precision", 0.5, "op.yaml: precision: Input should be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(folder: Path, path: str, value: Any, said: str) -> None:
    change(folder, path, value)
    with pytest.raises(UsageError) as raised:
        ops.load("rmsnorm", folder.parent)
    assert str(raised.value) == f"{folder}/{said}"


def test_an_unknown_key_comes_before_what_is_missing_for_it(folder: Path) -> None:
    spec = folder / "op.yaml"
    spec.write_text(spec.read_text().replace("\ntitle:", "\ntitel:"))
    with pytest.raises(UsageError, match="titel is no key of an op; did you mean title") as raised:
        ops.load("rmsnorm", folder.parent)
    assert str(raised.value).endswith(" (and 1 more)")


def test_an_op_without_any_key_is_said_to_be_empty(folder: Path) -> None:
    for text, said in (("", "op.yaml is empty"), ("- a list\n", "op.yaml holds no mapping")):
        (folder / "op.yaml").write_text(text)
        with pytest.raises(UsageError, match=said):
            ops.load("rmsnorm", folder.parent)


def test_broken_files_are_refused(folder: Path) -> None:
    (folder / "op.yaml").write_text("a: [")
    with pytest.raises(UsageError, match="not YAML"):
        ops.load("rmsnorm", folder.parent)
    shutil.copy(SHIPPED / "rmsnorm" / "op.yaml", folder / "op.yaml")
    (folder / "reference.py").write_text("def other(): ...")
    with pytest.raises(UsageError, match="rmsnorm_ref"):
        ops.load("rmsnorm", folder.parent)


def test_an_unknown_op_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean rmsnorm"):
        ops.load("rmsnrm", SHIPPED)


def test_the_sweep_is_as_specified(rmsnorm: Op) -> None:
    sweep = rmsnorm.spec.sweep
    assert len(sweep.shapes) * len(sweep.dtypes) * len(sweep.scales) == 72
    assert {name: (t.rtol, t.atol) for name, t in rmsnorm.spec.tolerance.items()} == {
        "float32": (1e-5, 1e-6),
        "float16": (2e-3, 1e-3),
        "bfloat16": (2e-2, 1e-2),
    }


@pytest.fixture
def export(rmsnorm: Op, tmp_path: Path) -> Path:
    """What a person gets: the four files, beside a kernel."""
    for name, data in rmsnorm.workspace_files().items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_rendered_files_know_nothing_of_us(rmsnorm: Op) -> None:
    assert not [name for name, data in rmsnorm.workspace_files().items() if b"orchestrator" in data]


def test_the_test_file_stands_alone(export: Path) -> None:
    (export / "rmsnorm_triton.py").write_bytes(zoo_kernel("good"))
    result = run(export, "test_correctness.py", "--quick")
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stderr
    assert (
        sum(line.startswith("[PASS] ") and "max_abs=" in line and "max_rel=" in line for line in lines) == 45 + 30 + 4
    )
    assert lines[-1].startswith("79 passed, 0 failed")


def test_the_test_file_fails_a_wrong_kernel(export: Path) -> None:
    (export / "rmsnorm_triton.py").write_bytes(zoo_kernel("divides_by_block"))
    result = run(export, "test_correctness.py", "--quick", "--holdout")
    assert result.returncode == 1
    assert "[FAIL] float32-M1xN7-scale1 " in result.stdout and "[PASS] float32-M5xN128-scale1 " in result.stdout


def test_bench_needs_a_gpu_and_says_so(export: Path) -> None:
    (export / "rmsnorm_triton.py").write_bytes(zoo_kernel("good"))
    result = run(export, "bench.py")
    assert result.returncode == 2 and "needs a GPU" in result.stderr


@pytest.mark.parametrize("name", ["softmax", "causal_attention", "swiglu"])
def test_bench_knows_what_torch_itself_has(tmp_path: Path, name: str) -> None:
    """Calls of another library stay out: the file stands alone."""
    op = ops.load(name, SHIPPED)
    lay_out({**op.workspace_files(), f"{name}_triton.py": f"def {name}_triton(): ...\n".encode()}, tmp_path)
    small = ", ".join(f"{dim!r}: 2" for dim in op.spec.dims)
    asked = (
        "import bench, ref, test_correctness as t\n"
        f"case = t.Case({{{small}}}, 'float16')\n"
        "given = t.make_inputs(case, 'cpu', seed=0) | t.PARAMETERS\n"
        f"print([name for name, call in bench.OWN.items() if call(**given).shape == ref.{name}_ref(**given).shape])"
    )
    own = [name for name, one in op.spec.bench.baselines.items() if not one.module]
    result = run(tmp_path, "-c", asked)
    assert result.stdout.strip() == repr(own), result.stderr


def test_an_op_may_set_thresholds_otherwise(folder: Path) -> None:
    assert ops.load("rmsnorm", folder.parent).spec.thresholds(Thresholds(margin_floor=0.03)) == Thresholds(0.03)
    change(folder, "decision", {"roofline_share": 0.8, "parity_rungs": ["launch"]})
    found = ops.load("rmsnorm", folder.parent).spec.thresholds(Thresholds(margin_floor=0.03))
    assert found == Thresholds(0.03, 0.8, ("launch",))


def test_a_size_that_is_no_power_of_two_is_always_measured(rmsnorm: Op) -> None:
    assert (4096, 1152) in rmsnorm.spec.bench.shapes
