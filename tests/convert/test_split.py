"""A split into parts: what its text may say, what it must compose to, and one played through to the whole's verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.convert import pure, split
from orchestrator.convert.split import Split
from orchestrator.judge.convert import composing
from orchestrator.ops import Op
from orchestrator.probed import Trial
from orchestrator.records import to_json
from orchestrator.tree import lay_out
from tests.test_cli import orchestrator

HERE = Path(__file__).parent
PARTS = ("weighed", "weighed_rms_scaled", "weighed_softmax_of_product")
TEXT = """
import torch

def squares(x):
    return x.square().mean(-1, keepdim=True)

def scaled(x, m, w, eps):
    return x * torch.rsqrt(m + eps) * w

def rmsnorm_composed(x, w, eps):
    m = squares(x)
    return scaled(x, m, w, eps)
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os", "only"),
        ("def f(x):\n    return open('a')", "open is"),
        ("def f(x):\n    len = open\n    return len('a')", "open is no name"),
        ("def f(x):\n    return torch.load('a')", ".load is not among"),
        ("def f(x):\n    return x.__class__", ".__class__ is not among"),
        ("def f(x):\n    return (lambda: x)()", "which is no name"),
        ("@torch.compile\ndef f(x):\n    return x", "decorators"),
        ("x = torch.ones(3)", "top level"),
        ("def f(x):\n    return f'{x}'", "no arithmetic"),
        ("def f(x:", "does not parse"),
    ],
)
def test_a_split_says_nothing_but_arithmetic(line: str, said: str) -> None:
    assert pure.fault(TEXT) == "" and said in pure.fault(f"{TEXT}\n{line}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, ""),
        ("", "no block named split.py"),
        (TEXT.replace("rmsnorm_composed", "composed"), "defines no rmsnorm_composed"),
        (TEXT.replace("(x, w, eps):\n    m", "(x, w):\n    m"), "takes ['x', 'w']"),
        (TEXT.replace("return scaled(x, m, w, eps)", "return x * m"), "only parts may compute"),
        (TEXT.replace("return scaled(x, m, w, eps)", "return x.sum()"), "only take views"),
        (TEXT.replace("return scaled(x, m, w, eps)", "return m"), "does not call scaled"),
    ],
)
def test_the_composing_function_computes_nothing(rmsnorm: Op, text: str, said: str) -> None:
    fault = split._fault(rmsnorm, text)
    assert said in fault and bool(fault) == bool(said)


def composed(op: Op, folder: Path, text: str) -> dict[str, object]:
    lay_out(op.workspace_files(), folder)
    trials = [to_json(Trial({"M": 3, "N": 5}), indent=None), to_json(Trial({"M": 4, "N": 7}), indent=None)]
    names = (f"{op.name}_triton", op.spec.function)
    return composing.composed(str(folder), *names, trials, text, f"{op.name}_composed")


def test_parts_that_compose_to_the_whole_are_seen_with_what_they_are_called_with(rmsnorm: Op, tmp_path: Path) -> None:
    found = composed(rmsnorm, tmp_path / "op", TEXT)
    assert found["differs"] == ""
    calls = found["calls"]
    assert isinstance(calls, dict) and list(calls) == ["squares", "scaled"]
    assert [call["tensors"]["x"]["shape"] for call in calls["scaled"]] == [(3, 5), (4, 7)]
    assert found["inner"] == {"squares": [], "scaled": ["m"]} and found["passed_on"] == {"squares": [0], "scaled": []}
    assert calls["scaled"][0]["others"] == {"eps": 1e-6} and calls["scaled"][0]["tensors"]["m"]["dtype"] == "float32"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("m + eps", "m + eps * 1.5"), "is off the whole by up to"),
        (TEXT.replace("* w\n", "* w[:-1]\n"), "raised RuntimeError"),
    ],
)
def test_parts_that_do_not_compose_to_the_whole_are_refused(rmsnorm: Op, tmp_path: Path, text: str, said: str) -> None:
    assert said in str(composed(rmsnorm, tmp_path / "op", text)["differs"])


def test_the_parts_kernels_become_one_file_in_which_no_name_stands_for_two(rmsnorm: Op) -> None:
    kernel = "import torch\nB = {0}\ndef _k(x):\n    return B\ndef {1}_triton(x):\n    return _k(x)\n"
    kernels = {
        "squares": ("squares_triton", kernel.format(1, "squares")),
        "scaled": ("scaled_triton", kernel.format(2, "scaled")),
    }
    text = split.composed(rmsnorm, Split(TEXT, {}), kernels)
    space: dict[str, object] = {}
    exec(text, space)
    assert space["squares_triton"](None) == 1 and space["scaled_triton"](None) == 2  # type: ignore[operator]
    assert text.count("import torch") == 1 and "def rmsnorm_triton(x, w, eps=1e-6):" in text.replace("1e-06", "1e-6")


SCOPES = """
import torch
BLOCK = {0}
if BLOCK:
    SIZE = BLOCK
class Config:
    BLOCK = BLOCK * 10
    other = BLOCK
    def asked(self):
        return BLOCK
async def later(BLOCK=BLOCK):
    return BLOCK
def k(p, BLOCK: int = BLOCK + 1):
    return BLOCK, [SIZE for SIZE in (p,)], (lambda Config: Config)(p)
def local():
    SIZE = 5
    return [SIZE + BLOCK for _ in range(1)]
def {1}_triton(x):
    global SIZE
    SIZE += 1
    return Config.other, Config().asked(), k(x), k(x, BLOCK=7), local(), SIZE, later.__defaults__, Config.__name__
"""


def test_a_name_that_a_function_or_class_has_for_itself_stays(rmsnorm: Op) -> None:
    kernels = {
        name: (f"{name}_triton", SCOPES.format(number, name)) for number, name in enumerate(("squares", "scaled"), 1)
    }
    space: dict[str, object] = {}
    exec(split.composed(rmsnorm, Split(TEXT, {}), kernels), space)
    for number, (name, (_, alone)) in enumerate(kernels.items(), 1):
        apart: dict[str, object] = {}
        exec(alone, apart)
        *expected, _ = apart[f"{name}_triton"](0)  # type: ignore[operator]
        *got, config = space[f"{name}_triton"](0)  # type: ignore[operator]
        assert got == expected and expected[0] == number * 10
        assert config == ("Config", "Config_scaled")[number - 1]


@pytest.mark.long
def test_what_is_too_large_for_one_kernel_is_split_judged_in_parts_and_as_a_whole(tmp_path: Path) -> None:
    for part in PARTS:
        shutil.copytree(HERE / "replies" / part, tmp_path / "ops" / part / "recorded")
    options = ("--replace", "--agent", "recorded", "--rounds", "1", "--device", "cpu")
    result = orchestrator(tmp_path, "convert", f"{HERE}/given/large.py:weighed", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout
    assert (
        said.index("ESCALATE")
        < said.index("split, round 1")
        < said.index("the part softmax_of_product")
        < said.index("judged as the whole")
    )
    assert said.count("UNMEASURED") >= 3
    assert (tmp_path / "ops" / "weighed" / "split.py").is_file()
    assert "_rms_scaled_kernel" in (tmp_path / "ops" / "weighed" / "composed.py").read_text()
