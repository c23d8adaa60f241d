"""Code cut out of its file, by syntax alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.convert import extract
from orchestrator.convert.extract import Target
from orchestrator.errors import UsageError

GIVEN = Path(__file__).parent / "given"


def cut(text: str, folder: Path, name: str = "f", **beside: str) -> extract.Cut:
    (folder / "code.py").write_text(text)
    for module, content in beside.items():
        (folder / f"{module}.py").write_text(content)
    return extract.cut(Target(folder / "code.py", name))


def test_what_is_used_comes_along_in_an_order_in_which_it_runs(tmp_path: Path) -> None:
    result = cut(
        "import math\nimport os\nA = 2\nB = A * 3\ndef f(x):\n    return g(x) * B\ndef g(x):\n    return math.exp(x)\n",
        tmp_path,
    )
    assert result.imports == ("import math",)
    namespace: dict[str, object] = {}
    exec("import math\n" + result.code, namespace)
    assert namespace["f"](0) == 6 and "os" not in result.code  # type: ignore[operator]


def test_modules_beside_it_are_followed_and_others_imported(tmp_path: Path) -> None:
    text = "from torch import nn\nfrom near import half as h, HALF\ndef f(x):\n    return h(x) + HALF\n"
    result = cut(
        text,
        tmp_path,
        near="from fractions import Fraction\nHALF = Fraction(1, 2)\ndef half(x):\n    return x * HALF\n",
    )
    assert result.imports == ("from fractions import Fraction",)
    namespace: dict[str, object] = {}
    exec("\n".join(result.imports) + "\n" + result.code, namespace)
    assert namespace["f"](1) == 1  # type: ignore[operator]
    assert {file.name for file in result.files} == {"code.py", "near.py"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Atention", "did you mean Attention"),
        ("Attention.foward", "did you mean forward"),
        ("scaled", "name the file that defines it"),
    ],
)
def test_a_name_that_is_not_there_is_said_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        extract.cut(Target(GIVEN / "attention.py", name))


def test_a_name_that_is_no_definition_is_said_to_be_none() -> None:
    with pytest.raises(UsageError, match="no 'scale' as a function or a class: write one with def"):
        extract.cut(Target(GIVEN / "refused.py", "scale"))


@pytest.mark.parametrize("text", ["model.py", "model.py:", ":f", "model.py:f.g.h", "model.py:2x"])
def test_what_names_no_code_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="FILE.py:NAME|no name of"):
        extract.parse(text)


def test_two_definitions_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    text = "from near import g\ndef f(x):\n    return g(x) + k(x)\ndef k(x):\n    return x\n"
    with pytest.raises(UsageError, match="k is defined in"):
        cut(text, tmp_path, near="def g(x):\n    return k(x)\ndef k(x):\n    return -x\n")


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("RMSNorm", "rms_norm"),
        ("Attention", "attention"),
        ("CausalSelfAttention.forward", "causal_self_attention_forward"),
        ("f", "f"),
    ],
)
def test_an_op_is_called_after_the_code(name: str, op: str) -> None:
    assert Target(Path("a.py"), name).op == op
