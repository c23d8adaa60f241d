"""The parts of timing that need no GPU: several processes at once, what is compared, how inputs move on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from orchestrator import ops, resources
from orchestrator.judge import testfile
from orchestrator.judge.timing import baselines
from orchestrator.judge.timing.clock import Clock
from orchestrator.judge.timing.moves import moved, steps, tied
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


def test_what_later_sittings_picked_otherwise_is_said_too() -> None:
    first, again, other = (f"code\n{PICKED} XBLOCK={size}" for size in (8, 8, 16))
    assert baselines.with_picks("", first) == first == baselines.with_picks(first, again)
    assert baselines.with_picks(first, other) == f"{first}\n{PICKED} XBLOCK=16"


def test_no_baseline_runs_a_file_of_the_candidates() -> None:
    more = replace(JOB, baselines=NAMED, champion="champion/rmsnorm_triton.py")
    assert JOB.kernel not in {spec.file for spec in baselines.baselines(more)}


def test_inputs_move_on_and_the_judge_knows_where_to() -> None:
    tensor = torch.arange(6).view(2, 3)
    assert moved(tensor, 1, tied=False).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert moved(tensor, 1, tied=True).tolist() == [[2, 0, 1], [5, 3, 4]]
    for together in (False, True):
        now = tensor.clone()
        for _ in range(4):
            now.copy_(moved(now, 2, tied=together))
        assert torch.equal(now, moved(tensor, 8, tied=together)), (
            "the judge must know what the worker's replays have seen"
        )


def test_no_two_inputs_move_alike() -> None:
    """Else softmax(q k) stays and a result of before can be moved along with v."""
    q, lengths = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int32)
    assert steps({"q": q, "k": q, "v": q}, tied=True) == {"q": 1, "k": 2, "v": 3}
    assert steps({"q": q, "lengths": lengths}, tied=False) == {"q": 1, "lengths": 2}


def test_what_holds_between_inputs_holds_after_they_moved(tmp_path: Path) -> None:
    """An honest attention was refused on an H200: the lengths had moved on, and NaN behind the end come before it."""
    op = ops.load("causal_attention", resources.shipped("configs") / "ops")
    for name, data in op.workspace_files().items():
        (tmp_path / name).write_bytes(data)
    kernel = ModuleType(op.spec.kernel_name.removesuffix(".py"))
    setattr(kernel, op.spec.function, lambda *arguments: arguments[0])
    with testfile.loaded(tmp_path, kernel) as test:
        assert tied(test)
        given = test.make_inputs(test.Case({"B": 8, "H": 1, "G": 2, "D": 64, "T": 40}, "float32"), "cpu", 0)
        elements = steps(given, tied=True)
        assert given["lengths"].min() < 40, "something lies behind an end"
        for times in range(1, 9):
            now = {name: moved(tensor, times * elements[name], tied=True) for name, tensor in given.items()}
            y = test.exactly(now, {})
            assert not y.isnan().any() and not torch.equal(y, test.exactly(given, {}))


def test_the_ceiling_between_two_sizes_is_between_their_times() -> None:
    copies = Copies((1000, 2000, 4000), (2.0, 2.0, 3.0))
    assert copies.us(500) == 2.0, "no copy is shorter than a launch"
    assert copies.us(3000) == 2.5
    assert copies.us(8000) == 6.0
    assert copies.best_gbps == pytest.approx(4000 / 3 / 1e3)


def test_a_short_kernel_is_timed_at_several_places_in_turn(run_script: Run) -> None:
    """Where its data lie makes a short kernel faster or slower by several percent, for as long as they lie there."""
    found = run_script("root", "placed_contender.py", needs="triton, torch")
    first, second, third, *again = found["little"]["blocks"]
    assert found["little"]["places"] == found["little"]["written"] == 3, "as many as the buffer holds"
    assert len({place for place, _ in (first, second, third)}) == 3
    assert [place for place, _ in again] == [first[0], second[0]]
    assert [-moved % 8 for _, moved in found["little"]["blocks"]] == [2, 3, 4, 2 + 2, 3 + 3], "each has its own moves"


@pytest.mark.parametrize("told", ["much", "no number", "less than nothing"])
def test_one_place_is_enough_where_there_may_be_no_room(run_script: Run, told: str) -> None:
    assert run_script("root", "placed_contender.py", needs="triton, torch")[told]["places"] == 1


def test_an_answer_about_times_that_is_none_is_tampering(run_script: Run) -> None:
    found = run_script("root", "lying_contender.py", needs="triton, torch")
    assert found.pop("honest") == "4.5 us, 3 replays, waited"
    assert found == dict.fromkeys(found, "TAMPERED") and len(found) == 22


def test_a_call_that_is_waited_for_no_longer_than_nothing_takes_what_an_event_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time of 0 would be tampering."""
    clock = Clock.__new__(Clock)  # without the device's memory
    clock._wait_us = 5.0
    monkeypatch.setattr(clock, "_spans", lambda *arguments: [4.0, 5.0, 7.0])
    assert clock.block_alone(lambda: None, 3, lambda: None) == [0.5, 0.5, 2.0]
