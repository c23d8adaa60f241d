"""A whole measurement from its job to its record, with stand-ins for what only a card can do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ZOO
from tests.judge.conftest import Run

HONEST = ZOO / "timing" / "honest" / "one_block.py"
EARLY = ZOO / "timing" / "returns_early.py"


@pytest.fixture(scope="module")
def flow(run_script: Run) -> Any:
    return run_script("root", "measuring.py", str(HONEST), "3", needs="triton, torch")


def test_every_shape_is_timed_and_those_that_count_in_every_sitting(flow: Any) -> None:
    assert flow["status"] == "PASSED", flow["message"]
    assert [(one["name"], one["curve"], one["sittings"]) for one in flow["shapes"]] == [
        ("4x32 float32", False, 3),
        ("3x20 float32", False, 3),
        ("2x32 float32", True, 1),
    ]
    deciding, _, curve = flow["shapes"]
    assert deciding["rounds"] == [12] * 4, "candidate, reference, torch's own and the twin, 4 rounds a sitting"
    assert curve["rounds"] == [2, 2, 0], "half as many, without the slowest and the twin"


def test_each_sitting_is_of_new_processes_and_nothing_is_left(flow: Any) -> None:
    assert sum("processes" in line for line in flow["said"]) == 3
    assert flow["left"] == [] and all(flow["servers"]) and flow["sandbox"] > 5


def test_a_kernel_that_returns_what_it_kept_is_convicted_while_it_is_timed(run_script: Run) -> None:
    found = run_script("root", "measuring.py", str(EARLY), "1", needs="triton, torch")
    assert found["status"] == "WRONG_VALUES" and "does not compute the result" in found["message"]
    assert found["left"] == [] and all(found["servers"])
