"""What stands in the way of a conversion is one sentence that says what is missing and how to give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.convert import begin, extract, write
from orchestrator.convert.extract import Target
from orchestrator.errors import UsageError
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
        ("random", "two calls on the same inputs differ: it is random"),
        ("seeded", "from a seed that it sets itself: it is random"),
        ("by_value", "depends on the values"),
        ("distinct", "depends on the values"),
        ("places", "depends on the values"),
        ("nothing", "no elements on the example"),
        ("Averages", "writes into its own mean"),
        ("Remembers", "depends on the calls before"),
        ("Ages", "depends on the calls before"),
        ("masks", "float"),
        ("anything", "named arguments only"),
        ("Counts", "writes into its own calls"),
        ("Configured", "get_init_inputs"),
    ],
)
def test_code_that_makes_no_op_is_refused_with_what_to_do(name: str, said: str) -> None:
    assert said in refused(name)


@pytest.mark.parametrize("name", ["drops_nothing", "Positions"])
def test_code_that_draws_to_no_effect_or_computes_ahead_is_not_refused(name: str) -> None:
    found, _ = examine(
        Asked(GIVEN / "refused.py", name), [{"tensors": {"q" if name[0] == "d" else "x": X}, "others": {}}]
    )
    assert found.calls[0].results[0].shape == (4, 8)


def test_an_argument_that_is_written_and_returned_is_the_ops_to_write() -> None:
    found, _ = examine(Asked(GIVEN / "refused.py", "doubled"), None)
    drafted = begin.draft(extract.cut(Target(GIVEN / "refused.py", "doubled")), found, "doubled")
    assert write.op(drafted).spec.outputs["y"].in_place == "x"


def test_an_example_that_cannot_be_made_is_refused_with_what_to_do() -> None:
    huge = X | {"shape": (1 << 30, 1 << 30)}
    assert "give a smaller example" in refused("random", [{"tensors": {"x": huge}, "others": {}}])


@pytest.mark.parametrize("returned", ["None", "3"])
def test_what_get_inputs_returns_must_be_arguments(tmp_path: Path, returned: str) -> None:
    file = tmp_path / "code.py"
    file.write_text(f"def f(x):\n    return x\ndef get_inputs():\n    return {returned}\n")
    with pytest.raises(Problem, match="return the arguments of one call as a list"):
        examine(Asked(file, "f"), None)


def test_what_has_no_axis_has_no_size_to_vary() -> None:
    found, _ = examine(Asked(GIVEN / "refused.py", "doubled"), [{"tensors": {"x": X | {"shape": ()}}, "others": {}}])
    with pytest.raises(UsageError, match="none of its tensors has an axis"):
        begin.draft(extract.cut(Target(GIVEN / "refused.py", "doubled")), found, "doubled")


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
