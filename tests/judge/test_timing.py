"""The parts of timing that need no GPU: several processes at once, what is compared, how inputs move on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from orchestrator.judge.timing import baselines
from orchestrator.judge.timing.clock import rolled
from orchestrator.judge.timing.roofline import Copies
from orchestrator.judge.timing.seats import TWIN
from orchestrator.measured import AUTOTUNED, CANDIDATE, CHAMPION, COMPILED, PICKED, REFERENCE, Baseline, MeasureJob
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


EAGER = (CANDIDATE, REFERENCE, "expression", TWIN)  # that compile nothing


@pytest.fixture(scope="module")
def lives(run_script: Run) -> Any:
    return run_script("root", "contenders.py", COMPILED, AUTOTUNED, needs="triton, torch")


def test_several_at_once_each_compute_their_own(lives: Any) -> None:
    assert lives["right"] == dict.fromkeys(EAGER, True)
    assert lives["pids"] == len(EAGER) + 1, "a process each, and the judge's"


def test_what_is_not_installed_or_left_out_is_absent_and_said_so(lives: Any) -> None:
    assert lives["names"] == list(EAGER)
    assert "No module named 'no_such'" in lives["absent"]["not installed"]
    assert lives["absent"][COMPILED] == lives["absent"][AUTOTUNED] == "left out"
    assert any(line.startswith("without not installed: ") for line in lives["said"])


def test_one_that_fails_is_out_and_another_becomes_the_twin(lives: Any) -> None:
    assert lives["twins"] == ["expression", REFERENCE]
    assert lives["absent"]["expression"] == "it failed"


def test_the_end_of_one_leaves_the_others_and_its_seat_is_taken_again(lives: Any) -> None:
    assert lives["candidate"] == {"first": True, "graph": False}
    assert lives["after"] == dict.fromkeys((CANDIDATE, REFERENCE, TWIN), True)
    assert all(lives["servers"])


def test_nothing_is_left_of_them(lives: Any) -> None:
    assert lives["left"] == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_shape_cannot_be_prepared(lives: Any) -> None:
    assert lives["prepared"].startswith("RUNTIME_ERROR")
    assert "CUDA" in lives["prepared"] or "NVIDIA driver" in lives["prepared"], "by how this torch was built"


@pytest.mark.long
def test_torch_compile_works_in_the_confinement(run_script: Run) -> None:
    lives = run_script("root", "contenders.py", AUTOTUNED, needs="triton, torch")
    assert lives["right"][COMPILED]


def test_the_reference_and_its_compilations_are_always_there() -> None:
    assert [spec.name for spec in baselines.baselines(JOB)] == [REFERENCE, COMPILED, AUTOTUNED]
    more = replace(JOB, baselines=NAMED, champion="champion/rmsnorm_triton.py")
    assert [spec.name for spec in baselines.baselines(more)][3:] == ["liger", "its own", CHAMPION]
    assert baselines.baselines(more)[-1].file == "champion/rmsnorm_triton.py"


def test_a_baseline_that_is_left_out_does_not_take_part() -> None:
    few = replace(JOB, baselines=NAMED, without=(AUTOTUNED, "its own"))
    assert [spec.name for spec in baselines.baselines(few)] == [REFERENCE, COMPILED, "liger"]
    assert baselines.twin(few).name == REFERENCE


def test_the_twin_is_not_compiled_where_there_is_another_baseline() -> None:
    """Two compilations may differ by a tenth: that is not the machine's noise."""
    assert baselines.twin(replace(JOB, baselines=NAMED)).name == "its own"
    assert baselines.twin(JOB).name == REFERENCE
    assert baselines.twin(replace(JOB, without=(REFERENCE,))).name == COMPILED


def test_what_torch_compile_picked_is_said_behind_its_code() -> None:
    saved = '{"XBLOCK": 8, "R0_BLOCK": 64, "num_warps": 4, "num_stages": 1, "configs_hash": "a", "time_taken_ms": 3}'
    assert baselines.picked_line(saved) == f"\n{PICKED} XBLOCK=8, R0_BLOCK=64, num_warps=4, num_stages=1"
    assert [baselines.picked_line(text) for text in ("", "[]", "{}", "3", '{"configs_hash": "a"}')] == [""] * 5


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


def test_an_answer_about_times_that_is_none_is_tampering(run_script: Run) -> None:
    found = run_script("root", "lying_contender.py", needs="triton, torch")
    assert found.pop("honest") == "4.5 us, 3 replays, waited"
    assert found == dict.fromkeys(found, "TAMPERED") and len(found) == 11
