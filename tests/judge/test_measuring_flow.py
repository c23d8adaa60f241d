"""A whole measurement from its job to its record, with stand-ins for what only a card can do."""

from __future__ import annotations

from pathlib import Path
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


def raising(folder: Path, error: str) -> str:
    """A kernel file whose calls raise that."""
    (folder / "k.py").write_text(
        f"import errno\n\nimport torch\n\n\ndef rmsnorm_triton(x, w, eps=1e-6):\n    raise {error}\n"
    )
    return str(folder / "k.py")


NO_SPACE = "OSError(errno.ENOSPC, 'No space left on device')"
NO_MEMORY = "torch.OutOfMemoryError('CUDA out of memory')"


@pytest.mark.parametrize(
    ("error", "lack", "words"),
    [
        ("ValueError", "start", "its process could not start"),
        (NO_SPACE, "disk", "is full"),
        (NO_MEMORY, "memory", "the GPU's memory does not suffice"),
    ],
)
def test_what_the_machine_lacks_convicts_no_kernel(
    run_script: Run, tmp_path: Path, error: str, lack: str, words: str
) -> None:
    found = run_script("root", "measuring.py", raising(tmp_path, error), "1", lack, needs="triton, torch")
    assert words in found["error"] and all(found["servers"])


@pytest.mark.parametrize("error", [NO_SPACE, NO_MEMORY])
def test_what_a_kernel_says_that_the_machine_lacks_is_its_own_failure(
    run_script: Run, tmp_path: Path, error: str
) -> None:
    found = run_script("root", "measuring.py", raising(tmp_path, error), "1", needs="triton, torch")
    assert found["status"] == "RUNTIME_ERROR" and found["left"] == []
