"""What stands in the way of a conversion is one sentence that says what is missing and how to give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.convert import extract
from orchestrator.convert.extract import Target
from orchestrator.judge.convert.examine import examine
from orchestrator.judge.convert.subject import Asked, Problem

GIVEN = Path(__file__).parent / "given"
X = {"shape": (4, 8), "dtype": "float32", "spread": 1.0, "low": -1.0, "high": 1.0}


def refused(name: str, calls: list[dict[str, Any]] | None = None, init: Any = None) -> str:
    with pytest.raises(Problem) as caught:
        examine(Asked(GIVEN / "refused.py", name, init=init), calls)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("random", "it is random"),
        ("by_value", "depends on the values"),
        ("masks", "float"),
        ("anything", "named arguments only"),
        ("Counts", "writes into its own calls"),
        ("Configured", "get_init_inputs"),
    ],
)
def test_code_that_makes_no_op_is_refused_with_what_to_do(name: str, said: str) -> None:
    assert said in refused(name)


def test_what_is_written_and_not_returned_is_refused() -> None:
    assert "writes into out" in refused("keeps", [{"tensors": {"x": X, "out": X}, "others": {}}])


def test_a_graph_that_no_single_kernel_should_hold_is_refused() -> None:
    assert "parameters and buffers" in refused("Configured", init={"width": 8, "depth": 12})


def test_an_example_that_does_not_fit_is_said_with_the_signature() -> None:
    assert "missing a required argument" in refused("keeps")


def test_only_what_the_call_reads_of_its_object_is_an_input() -> None:
    found, kept = examine(Asked(GIVEN / "refused.py", "Unread"), None)
    assert found.built is not None and list(found.built.state) == ["read"]
    assert kept.subject.owner.unread.eq(1).all(), "it is as it was"


def test_a_file_that_imports_what_is_not_there_is_run_as_it_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "far.py"
    inputs = "def get_inputs():\n    return [torch.randn(3, 5)]\n"
    file.write_text(f"import not_installed_here\nimport torch\ndef f(x):\n    return x * 2\n{inputs}")
    text = extract.cut(Target(file, "f"), ("get_inputs",)).text
    found, _ = examine(Asked(file, "f", cut=text), None)
    assert found.calls[0].results[0].shape == (3, 5) and "not_installed_here" in found.notes[0]
    with pytest.raises(Problem, match="not_installed_here.*install it here"):
        examine(Asked(file, "f", cut="import not_installed_here"), None)


def test_a_module_is_seen_with_its_state_and_its_results() -> None:
    found, _ = examine(Asked(GIVEN / "normed.py", "Standardised"), None)
    assert found.built is not None and set(found.built.state) == {"weight", "mean", "var"}
    assert found.built.sizes == {"width": 48} and found.calls[0].results[0].shape == (6, 48)
    assert not any(one.constant for one in found.built.state.values())
