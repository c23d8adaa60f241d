"""The parts of timing that need no GPU: several processes at once, what is compared, how inputs move on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from orchestrator.judge.timing import baselines
from orchestrator.judge.timing.clock import rolled
from orchestrator.judge.timing.roofline import Copies
from orchestrator.measured import AUTOTUNED, CHAMPION, COMPILED, REFERENCE, Baseline, MeasureJob
from tests.judge.conftest import Run

JOB = MeasureJob(
    *("run", "nonce", "/job", "rmsnorm_triton.py", "rmsnorm_triton", "rmsnorm_ref", {"eps": 1e-6}),
    dims=("M", "N"),
    shapes=((4096, 1024),),
    dtypes=("float16",),
    bytes="2 * M * N * itemsize",
    flops="4 * M * N",
)
NAMED = (Baseline("liger", "liger_kernel.f(x)", "liger_kernel"), Baseline("its own", "torch.f(x)"))


@pytest.fixture(scope="module")
def lives(run_script: Run) -> Any:
    return run_script(
        "root", "contenders.py", *("kernel", "reference", "expression", "not installed"), needs="triton, torch"
    )


def test_several_at_once_each_compute_their_own(lives: Any) -> None:
    assert lives["right"] == {"kernel": True, "reference": True, "expression": True}
    assert lives["processes"] == 3


def test_the_end_of_one_leaves_the_others(lives: Any) -> None:
    assert lives["others_live_on"] and lives["a_seat_can_be_taken_again"]
    assert all(lives["servers"])


def test_what_is_not_installed_says_so(lives: Any) -> None:
    assert "No module named 'no_such'" in lives["missing"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_shape_cannot_be_prepared(lives: Any) -> None:
    assert lives["prepared"].startswith("RUNTIME_ERROR") and "CUDA" in lives["prepared"]


@pytest.mark.long
def test_torch_compile_works_in_the_confinement(run_script: Run) -> None:
    lives = run_script(
        "root", "contenders.py", *("kernel", "reference", "compiled", "not installed"), needs="triton, torch"
    )
    assert lives["right"]["compiled"]


def test_the_reference_and_its_compilations_are_always_there() -> None:
    assert [spec.name for spec in baselines.baselines(JOB)] == [REFERENCE, COMPILED, AUTOTUNED]
    more = replace(JOB, baselines=NAMED, champion="champion/rmsnorm_triton.py")
    assert [spec.name for spec in baselines.baselines(more)][3:] == ["liger", "its own", CHAMPION]
    assert baselines.baselines(more)[-1].file == "champion/rmsnorm_triton.py"


def test_the_twin_needs_no_compilation_where_there_is_such_a_baseline() -> None:
    assert baselines.twin(replace(JOB, baselines=NAMED)).name == "its own"
    assert baselines.twin(JOB).name == COMPILED


def test_no_baseline_runs_a_file_of_the_candidates() -> None:
    more = replace(JOB, baselines=NAMED, champion="champion/rmsnorm_triton.py")
    assert JOB.kernel not in {spec.file for spec in baselines.baselines(more)}


def test_inputs_move_on_by_one_element_a_replay() -> None:
    tensor = torch.arange(6).view(2, 3)
    assert rolled(tensor, 1).tolist() == [[5, 0, 1], [2, 3, 4]]
    moved = tensor.clone()
    for _ in range(4):
        moved.copy_(rolled(moved, 1))
    assert torch.equal(moved, rolled(tensor, 4)), "the judge must know what the worker's replays have seen"


def test_the_ceiling_between_two_sizes_is_between_their_times() -> None:
    copies = Copies((1000, 2000, 4000), (2.0, 2.0, 3.0))
    assert copies.us(500) == 2.0, "no copy is shorter than a launch"
    assert copies.us(3000) == 2.5
    assert copies.us(8000) == 6.0
    assert copies.best_gbps == pytest.approx(4000 / 3 / 1e3)
