"""Problem files become ops: sizes found and varied, parameters as inputs; what cannot be one is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalogue, opcheck, ops, outcome
from orchestrator.errors import UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge import problem as problems
from orchestrator.outcome import Outcome
from orchestrator.problems import folder, source, taken
from orchestrator.problems.facts import Array, Facts

HEAD = "import torch\nimport torch.nn as nn\n\n"
NORM = (
    HEAD
    + '''
class Model(nn.Module):
    """Each channel of an image, normed and weighted."""

    def __init__(self, channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, image):
        size = torch.sqrt(image.square().mean(dim=(2, 3), keepdim=True) + self.eps)
        return image / size * self.weight.view(1, -1, 1, 1)


batch = 16
channels = 64
image_size = (256, 200)


def get_inputs():
    return [torch.rand(batch, channels, *image_size)]


def get_init_inputs():
    return [channels]
'''
)
LOSS = (
    HEAD
    + '''
class Model(nn.Module):
    """How far the right class is below the best."""

    def forward(self, scores, labels):
        return scores.max(dim=1).values - scores.gather(1, labels.unsqueeze(1)).squeeze(1)


batch = 65536
classes = 100000


def get_inputs():
    return [torch.randn(batch, classes), torch.randint(0, classes, (batch,))]


def get_init_inputs():
    return []
'''
)


@pytest.fixture
def problem(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        (tmp_path / "level1").mkdir(exist_ok=True)
        (tmp_path / "level1" / name).write_text(text)
        return tmp_path / "level1" / name

    return write


def test_constants_and_the_text_as_a_function_of_them() -> None:
    assert source.constants(NORM) == {"batch": 16, "channels": 64, "image_size_0": 256, "image_size_1": 200}
    text = source.as_function(NORM, ["channels", "image_size_1"])
    assert text.startswith("def problem(channels, image_size_1):\n") and "image_size = (256, image_size_1,)" in text
    assert "    batch = 16" in text and "    channels = 64" not in text
    assert source.missing("def get_inputs(): ...") == ["Model", "get_init_inputs"]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_problem_is_an_op_whose_checker_is_good_enough(
    judge: LocalExecutor, tmp_path: Path, problem: Callable[[str, str], Path]
) -> None:
    said: list[str] = []
    (name,) = taken.names(f"kernelbench:{problem('7_Image Norm_.py', NORM)}", tmp_path / "ops", said.append)
    assert name == "level1_7_image_norm" and name in said[0]
    op = ops.load(name, tmp_path / "ops")
    spec = op.spec
    assert spec.entry == f"{name}_triton(image, weight)" and spec.dims == tuple(source.constants(NORM))
    assert spec.inputs["weight"].shape == ("channels",) and not spec.inputs["weight"].scaled
    assert (16, 64, 256, 200) in spec.sweep.shapes and all(bound <= 130 for bound in spec.sweep.quick.values())
    assert spec.bench.shapes == ((16, 64, 256, 200),) and "image / size" in spec.semantics
    each = "batch * channels * image_size_0 * image_size_1"
    assert (spec.bench.flops, spec.bench.flops_of) == (f"4 * {each} + 2 * batch * channels", "reference")
    result = await opcheck.check(op, judge)
    assert result.passed, "\n".join(opcheck.lines(result))
    assert taken.names(f"kernelbench:{tmp_path}/level1/7_Image Norm_.py", tmp_path / "ops", said.append) == [name]
    assert len(said) == 1, "made once"
    problem("7_Image Norm_.py", NORM + "# changed\n")
    with pytest.raises(UsageError, match="was not made from .* as it is now"):
        taken.names(f"kernelbench:{tmp_path}/level1/7_Image Norm_.py", tmp_path / "ops", said.append)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NORM.replace("def get_init_inputs", "def get_other_inputs"), "defines no get_init_inputs"),
        ("def (", "cannot be read as a problem"),
        pytest.param(
            NORM.replace("image.square()", "image.squared()"), "as it is given: AttributeError", marks=pytest.mark.long
        ),
        pytest.param(
            NORM.replace("batch, channels, *image_size", "16, 64, 256, 200"), "cannot be varied", marks=pytest.mark.long
        ),
        pytest.param(
            LOSS.replace("torch.randint(0, classes, (batch,))", "torch.arange(batch)"),
            "its range is not known",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_cannot_be_an_op_is_one_line_and_leaves_nothing(
    tmp_path: Path, problem: Callable[[str, str], Path], text: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        taken.names(f"kernelbench:{problem('1_x.py', text)}", tmp_path / "ops", print)
    assert "1_x.py" in str(refused.value) and "\n" not in str(refused.value)
    assert not (tmp_path / "ops").exists() or not any((tmp_path / "ops").iterdir())


SELF_ATTENTION = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, q):
        return (q @ q.mT).relu() @ q


B = 4
T = 512
D = 64


def get_inputs():
    return [torch.randn(B, T, D)]


def get_init_inputs():
    return []
"""
)


@pytest.mark.parametrize(
    ("change", "flops"),
    [
        (("", ""), "4 * B * T**2 * D + B * T**2"),
        (("q @ q.mT", "q"), "0"),  # what runs at none of the sizes is not known
        ((".relu()", ".relu().sort().values"), "4 * B * T**2 * D + B * T**2"),
        ((" @ q\n", ".cholesky_inverse() @ q\n"), "0"),
    ],
)
def test_the_operations_of_a_problem_are_counted_without_computing_it(change: tuple[str, str], flops: str) -> None:
    """More terms than one, at sizes that would take long."""
    model = problems._Problem(SELF_ATTENTION.replace(*change))
    assert problems._flops(model, {"B": 4, "T": 512, "D": 64}, [(3, 5, 7), (1, 2, 3), (4, 512, 64)]) == flops


def test_an_op_of_which_they_are_not_known_says_so() -> None:
    array = Array("x", ("N",), "float32")
    facts = Facts(dims={"N": 8}, inputs=(array,), outputs=(array,), shapes=((4,),), telling=(4,), bench=((8,),))
    for flops, said in (("0", True), ("2 * N", False)):
        text = folder.op_files("p", replace(facts, flops=flops), SELF_ATTENTION, "a file")["op.yaml"].decode()
        assert ("is not known (flops: 0)" in text) is said


@pytest.mark.long
def test_a_folder_is_a_list_of_which_what_cannot_be_an_op_is_named(
    tmp_path: Path, problem: Callable[[str, str], Path]
) -> None:
    problem("10_loss.py", LOSS)
    problem("9_none.py", "def (")
    said: list[str] = []
    found = taken.names(f"kernelbench:{tmp_path / 'level1'}", tmp_path / "ops", said.append)
    assert found == ["level1_10_loss"] and said[0].startswith("left out: ") and "9_none.py" in said[0]
    spec = catalogue.opened(tmp_path / "ops").load("level1_10_loss").spec
    assert spec.bench.flops == "batch * classes + batch"
    assert spec.inputs["labels"].range == (0, "classes") and spec.outputs["y"].shape == ("batch",)
    assert spec.sweep.large is not None and spec.sweep.large.shape == (65536, 100000), "too much for the usual buffers"
    assert spec.sweep.large.along == "batch" and (65536, 100000) not in spec.sweep.shapes
    assert taken.names("rmsnorm", None, said.append) == ["rmsnorm"]


def test_fast_p_is_of_all_ops() -> None:
    some = [
        Outcome("a", "1", "MERGE", "", passed=True, speedup=1.6),
        Outcome("b", "2", "ABANDON", "", passed=True, speedup=0.9),
        Outcome("c", "3", "ESCALATE", ""),
        Outcome("d", "4", "UNMEASURED", "", passed=True),
    ]
    said = outcome.fast(some)
    assert (
        said == "fast_0 0.75, fast_0.5 0.50, fast_1 0.25, fast_1.5 0.25, fast_2 0.00 of 4 ops; 1 correct, not measured"
    )
    assert outcome.fast(some[2:]) == "fast_0 0.50 of 2 ops; 1 correct, not measured"
