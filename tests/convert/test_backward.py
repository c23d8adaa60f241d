"""Gradients of converted code: which there are, that autograd.py gives them, that their op tells float32 apart."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import config, opcheck, verifying
from orchestrator.convert import Wanted, backward, begin, convert, examples, extract, write
from orchestrator.convert.backward import MODULE, Way
from orchestrator.convert.draft import Draft
from orchestrator.convert.examples import Examples
from orchestrator.convert.spec import spec
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge.convert import gradients
from orchestrator.judge.convert.examine import Kept, examine
from orchestrator.judge.convert.subject import Asked
from orchestrator.probed import Differentiated, Trial
from orchestrator.records import Fate, Status, to_json
from orchestrator.tree import lay_out
from orchestrator.verifying import KernelFile
from tests.test_cli import orchestrator
from tests.test_verifying import Told

HERE = Path(__file__).parent
GIVEN = HERE / "given"
X = {"shape": (4, 6), "dtype": "float32", "spread": 1.0, "low": -3.0, "high": 3.0}
KEEP = {"shape": (4, 6), "dtype": "bool", "low": 0, "high": 1, "mean": 0.5}
CALLS: dict[str, dict[str, Any]] = {
    "gated": {"x": X, "gate": X, "keep": KEEP},
    "weighed": {"x": X, "w": {**X, "shape": (6,)}, "other": X},
    "normed.py:Standardised": {"x": {**X, "shape": (4, 48)}},
}


@dataclass(frozen=True)
class Subject:
    """An op of the example's own sizes, and its code, in this process."""

    kept: Kept
    draft: Draft
    place: Path

    def asked(self, whole: Draft) -> tuple[Any, ...]:
        folder = Path(tempfile.mkdtemp(dir=self.place)) / whole.name
        lay_out(write.op(whole).workspace_files(), folder)
        source = {name: [one.kind, one.key] for name, one in self.draft.inputs.items()}
        return self.kept, str(folder), f"{whole.name}_triton", f"{whole.name}_triton", f"{whole.name}_ref", source

    def found(self) -> Differentiated:
        return gradients.differentiated(*self.asked(self.draft), list(self.draft.outputs))

    def differs(self, way: Way, change: tuple[str, str] = ("", "")) -> str:
        found = self.found()
        whole = backward.draft(self.draft, found) if way is Way.KERNEL else self.draft
        text = backward.module(way, self.draft, found)
        changed = text.replace(*change)
        assert (changed != text) == bool(change[0])
        trial = to_json(Trial({"N": 1}, "float64")) if way is Way.KERNEL else ""
        return gradients.differs(*self.asked(whole), self.draft.name, changed, trial)


def subject(place: Path, name: str) -> Subject:
    target = extract.parse(f"{GIVEN}/{name if ':' in name else f'gradients.py:{name}'}")
    calls = [{"tensors": CALLS.get(name, {"x": X}), "others": {}}]
    found, kept = examine(Asked(target.path, target.first), calls)
    draft = begin.draft(extract.cut(target), found, target.op)
    shapes = [tuple(map(str, one.shape)) for one in found.calls[0].results]
    outputs = {n: replace(one, shape=shape) for (n, one), shape in zip(draft.outputs.items(), shapes, strict=True)}
    return Subject(kept, replace(draft, outputs=outputs), place)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gated", Differentiated(("y0",), ("x", "gate"))),
        ("weighed", Differentiated(("y",), ("x", "w"))),
        ("normed.py:Standardised", Differentiated(("y",), ("x", "weight", "mean", "var"))),
    ],
)
@pytest.mark.parametrize("way", [Way.KERNEL, Way.CHECKPOINT])
def test_gradients_are_the_originals_and_what_has_none_gets_none(
    tmp_path: Path, name: str, found: Differentiated, way: Way
) -> None:
    one = subject(tmp_path, name)
    assert one.found() == found
    assert one.differs(way) == ""


@pytest.mark.parametrize(
    ("way", "change"),
    [
        (Way.KERNEL, ("_found[0], _found[1]", "_found[1], _found[0]")),
        (Way.KERNEL, ("_of[0].contiguous()", "_of[0] * 2")),
        (Way.KERNEL, ("_found[1], None", "None, None")),
        (Way.CHECKPOINT, ('_gradients.get("gate")', '_gradients.get("x")')),
        (Way.CHECKPOINT, ('_gradients.get("gate")', "None")),
    ],
)
def test_a_module_that_hands_on_other_gradients_is_refused(tmp_path: Path, way: Way, change: tuple[str, str]) -> None:
    assert "gradient by" in subject(tmp_path, "gated").differs(way, change)


@pytest.mark.parametrize(("name", "said"), [("largest", "its results are integers"), ("constant", "it is detached")])
def test_code_without_a_gradient_is_refused(tmp_path: Path, name: str, said: str) -> None:
    assert said in subject(tmp_path, name).found().problem


def test_a_gradient_that_is_not_that_of_the_values_makes_no_kernel_but_may_be_recomputed(tmp_path: Path) -> None:
    one = subject(tmp_path, "straight")
    assert "gradcheck" in one.differs(Way.KERNEL) and one.differs(Way.CHECKPOINT) == ""


def test_the_op_of_gradients_takes_those_of_the_results_and_is_judged_in_float64(tmp_path: Path) -> None:
    one = subject(tmp_path, "gated")
    said = spec(backward.draft(one.draft, one.found()))
    assert said["entry"].startswith("gated_backward_triton(dy0, x, gate, keep")
    assert list(said["outputs"]) == ["dx", "dgate"] and said["sweep"]["dtypes"][-1] == "float64"
    taken = replace(one.draft, inputs={**one.draft.inputs, "dy0": one.draft.inputs["x"]})
    assert "dy0_" in backward.draft(taken, one.found()).inputs, "no name stands for two"


def test_what_is_written_into_an_input_has_no_gradient_here(tmp_path: Path) -> None:
    draft = subject(tmp_path, "constant").draft
    written = replace(draft, outputs={"y": replace(draft.outputs["y"], in_place="x")})
    with pytest.raises(UsageError, match="writes into x"):
        backward.refuse_in_place(written)


def test_a_way_that_there_is_not_is_said(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "convert", f"{GIVEN}/gradients.py:gated", "--backward", "kernle")
    assert result.returncode == 2 and "there are kernel, checkpoint, compile" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
async def test_a_backward_kernel_is_judged_and_tied_to_the_forward_one(judge: LocalExecutor, tmp_path: Path) -> None:
    name = "functions_logsumexp"
    found = examples.read(GIVEN / "logsumexp.yaml")
    wanted = Wanted(extract.parse(f"{GIVEN}/functions.py:logsumexp"), found, tmp_path / name, backward=Way.KERNEL)
    told: list[str] = []
    forward, made = await convert(wanted, told.append, lambda op: opcheck.check(op, judge))
    assert f"export {name} and {name}_backward, copy" in told[-1] and f"from autograd import {name}`" in told[-1]
    fates = {one.name: one.fate for one in made.check.decoys}
    assert forward.check.passed and made.check.passed and fates["through float32"] is Fate.REJECTED

    kernel = (HERE / "kernels" / f"{name}_backward.py").read_bytes()
    narrow = kernel.replace(b"tl.float64 if x.dtype == torch.float64 else tl.float32", b"tl.float32")
    assert narrow != kernel
    files = (KernelFile("right", kernel), KernelFile("narrow", narrow))
    right, other = await verifying.verify(files, made.op, judge, config.load().judge, Told())
    assert right.report.status is Status.PASSED, right.report.message
    assert other.report.status in (Status.WRONG_VALUES, Status.LOW_PRECISION)
    assert max(case.precision or 0 for case in right.report.cases) < made.op.spec.precision / 2

    for op, file in ((forward.op, name), (made.op, f"{name}_backward")):
        package = tmp_path / f"{file}_kernel"
        text = (HERE / "kernels" / f"{file}.py").read_text() + f"\n{file} = {op.spec.function}\n"
        lay_out({"ref.py": op.reference.encode(), "__init__.py": text.encode()}, package)
    (tmp_path / MODULE).write_text((forward.op.folder / MODULE).read_text())
    text = (
        f"import torch\nfrom autograd import {name}\nx = torch.randn(5, 37, requires_grad=True)\n"
        f"w = torch.randn(5)\n{name}(x).backward(w)\ngot = x.grad.clone()\nx.grad = None\n"
        "x.logsumexp(-1).backward(w)\ntorch.testing.assert_close(got, x.grad)\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
async def test_values_that_only_float64_can_hold_do_not_widen_its_tolerance(
    judge: LocalExecutor, tmp_path: Path
) -> None:
    """With large values the gradients of a scan overflow in float32, and are 1e250 in float64."""
    target = extract.parse(f"{GIVEN}/functions.py:selective_scan")
    found = examples.read(GIVEN / "scan.yaml")
    wanted = Wanted(target, found, tmp_path / target.op, backward=Way.KERNEL)
    _, made = await convert(wanted, lambda _: None, lambda op: opcheck.check(op, judge))
    assert made.check.passed and made.op.spec.tolerance["float64"].atol < 1e-9


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", ["normed.py:Standardised", "attention.py:Attention"])
async def test_the_reference_compiled_gives_the_originals_gradients(
    judge: LocalExecutor, tmp_path: Path, name: str
) -> None:
    target = extract.parse(f"{GIVEN}/{name}")
    wanted = Wanted(target, Examples(), tmp_path / target.op, backward=Way.COMPILE)
    (made,) = await convert(wanted, lambda _: None, lambda op: opcheck.check(op, judge))
    assert "torch.compile" in (made.op.folder / MODULE).read_text()
    record = (made.op.folder / "CONVERTED.md").read_text()
    assert "aot_eager" in record and f"from autograd import {target.op}" in record


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_is_written_where_there_is_no_gradient(judge: LocalExecutor, tmp_path: Path) -> None:
    target = extract.parse(f"{GIVEN}/gradients.py:largest")
    wanted = Wanted(target, Examples(), tmp_path / "largest", backward=Way.KERNEL)
    with pytest.raises(UsageError, match="no result of it has a gradient"):
        await convert(wanted, lambda _: None, lambda op: opcheck.check(op, judge))
    assert not list(tmp_path.iterdir())
