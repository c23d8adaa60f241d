"""Lives of candidates.py under the fork server, as root and as a user: each ends as it should, and nothing is left."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judge.candidates import SCENARIOS
from tests.judge.conftest import Run

USERS = ("root", "user")
ENDS: dict[str, dict[str, Any]] = {
    "honest": {"reason": "exited", "code": 0},
    "planted_secret": {"reason": "exited", "code": 0},
    "exit_zero": {"reason": "exited", "code": 0, "output": "PASS\n"},
    "exit_seven": {"reason": "exited", "code": 7},
    "raises": {"reason": "exited", "code": 1},
    "segfault": {"reason": "signal", "signal": 11, "code": None},
    "kills_itself": {"reason": "signal", "signal": 9},
    "burns_cpu": {"reason": "signal", "signal": 24},
    "fork_bomb": {"reason": "processes"},
    "hidden_fork_bomb": {"reason": "processes"},
    "hopper": {"reason": "processes"},  # two alive at a time, but its dead pile up faster than they are collected
    "thread_bomb": {"reason": "processes"},
    "daemon": {"reason": "exited", "code": 0},
    "memory_bomb": {"reason": "memory"},
    "shared_memory_bomb": {"reason": "memory"},
    "memory_in_children": {"reason": "memory"},
    "disk_bomb": {"reason": "disk"},
    "many_files": {"reason": "disk"},
    "deep_folders": {"reason": "disk"},
    "unlistable_folder": {},  # see its own test
    "one_big_file": {"reason": "exited", "code": 1},
    "flood": {"reason": "exited", "code": 0},
    "hangs": {"reason": "killed", "output": "so far\n", "detail": "timeout"},
    "stops_itself": {"reason": "killed"},
    "closes_everything": {"reason": "killed"},
    "kill_everything": {"reason": "exited", "code": 0},
}


@pytest.fixture(params=USERS)
def lives(request: pytest.FixtureRequest, run_script: Run) -> dict[str, Any]:
    found: dict[str, Any] = run_script(request.param, "candidates.py")
    return found | {"user": request.param}


def test_every_scenario_has_an_expected_end() -> None:
    assert ENDS.keys() == SCENARIOS.keys()


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_as_it_should_and_leaves_nothing(lives: dict[str, Any], name: str) -> None:
    """All of them ran under one fork server, one after another: each also shows that the one before did no harm."""
    life = lives[name]
    assert {key: life[key] for key in ENDS[name]} == ENDS[name], life
    assert life["left"] == []
    assert life["seconds"] < 5


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", ["fork_bomb", "daemon", "memory_in_children", "closes_everything"])
def test_without_signal_scopes_they_are_hunted_one_by_one(run_script: Run, user: str, name: str) -> None:
    names = ("fork_bomb", "daemon", "memory_in_children", "closes_everything")
    found = run_script(user, "candidates.py", "one-by-one", *names)
    assert {key: found[name][key] for key in ENDS[name]} == ENDS[name]
    assert found[name]["left"] == []
    assert found["alive"]


def test_a_candidate_finds_only_what_it_was_given(lives: dict[str, Any]) -> None:
    life, said = lives["honest"], lives["honest"]["said"]
    listing = 1  # the descriptor through which it listed its descriptors
    assert len(said["fds"]) == len({0, 1, 2, said["channel"], *said["passed"]}) + listing
    assert life["through"] == "through the passed descriptor"
    assert life["output"] == "a line\nanother\n"
    assert "SECRET" not in said["environ"]
    assert said["environ"]["HOME"] == said["environ"]["TMPDIR"] == said["cwd"]
    assert said["temporary"].startswith(said["cwd"])
    assert said["leads_session"]
    assert said["limits"]["core"] == [0, 0]


def test_secrets_in_environments_stay_out_of_reach(lives: dict[str, Any]) -> None:
    said = lives["planted_secret"]["said"]
    assert said["own"] == "allowed: False"
    assert said["judge"].startswith("refused")
    assert said["warden"].startswith("refused")


def test_it_cannot_kill_its_judge_or_warden(lives: dict[str, Any]) -> None:
    said = lives["kill_everything"]["said"]
    pieces = {piece["name"]: piece for piece in lives["kill_everything"]["pieces"]}
    if not pieces["signals kept inside"]["held"]:
        pytest.skip(pieces["signals kept inside"]["detail"])
    assert said["judge"].startswith("refused")
    assert said["warden"].startswith("refused")


def test_output_keeps_head_and_tail_and_counts_the_rest(lives: dict[str, Any]) -> None:
    life = lives["flood"]
    assert life["output"].startswith("first\n")
    assert life["output"].endswith("\nlast\n")
    assert "bytes left out" in life["output"]
    assert life["output_bytes"] == 500 * 65536 + 12
    assert len(life["output"]) < 70_000


def test_errors_reach_the_output(lives: dict[str, Any]) -> None:
    assert "ValueError: no such luck" in lives["raises"]["output"]
    assert "Segmentation fault" in lives["segfault"]["output"]
    assert "File too large" in lives["one_big_file"]["output"]


def test_limits_are_named_in_the_detail(lives: dict[str, Any]) -> None:
    assert "the limit is 192 MiB" in lives["memory_bomb"]["detail"]
    assert "20 processes" in lives["fork_bomb"]["detail"]
    assert lives["memory_in_children"]["peak_processes"] > 5
    assert lives["memory_bomb"]["peak_resident_bytes"] > 192 << 20


def test_what_cannot_be_measured_counts_as_too_much(lives: dict[str, Any]) -> None:
    expected = "exited" if lives["user"] == "root" else "disk"  # root's warden lists the folder all the same
    assert lives["unlistable_folder"]["reason"] == expected


def test_the_server_survives_them_all(lives: dict[str, Any]) -> None:
    assert lives["alive"]


def test_what_is_interrupted_is_the_candidate_and_nobody_with_its_number(lives: dict[str, Any]) -> None:
    found = lives["interrupted"]
    assert (found["ended"]["reason"], found["ended"]["signal"]) == ("signal", 9)
    assert found["bystander"] and found["descriptors"] == 0


def test_misuse_is_an_error_that_says_what_to_do(lives: dict[str, Any]) -> None:
    assert "kill it before" in lives["misuse"]["second"]
    assert "too large" in lives["misuse"]["large"]
    assert "could not be confined" in lives["misuse"]["missing"]
    assert "/nonexistent/scratch" in lives["misuse"]["missing"]


def test_the_wardens_death_takes_the_candidate_and_is_an_error(lives: dict[str, Any]) -> None:
    death = lives["death_of_warden"]
    assert death["gone"]
    assert not death["alive"]
    assert "must be started anew" in death["told"]
    assert "must be started anew" in death["again"]


def test_the_judges_death_takes_warden_candidate_and_daemon(lives: dict[str, Any]) -> None:
    assert lives["death_of_judge"]["gone"]


def test_triton_runs_in_its_interpreter(run_script: Run) -> None:
    found = run_script("root", "triton_candidate.py", "cpu", needs="triton, torch")
    assert found["answer"] == {"kernel": True, "moved": True, "parallel": True}
    assert found["reason"] == "exited"
    print(f"fork to confined {found['spawned_s'] * 1e3:.0f} ms, kernel {found['answered_s']:.2f} s")


@pytest.mark.gpu
@pytest.mark.parametrize("user", USERS)
def test_cuda_and_triton_run_on_the_gpu(run_script: Run, user: str) -> None:
    found = run_script(user, "triton_candidate.py", "cuda", needs="triton, torch")
    if found is None:
        pytest.skip("torch finds no GPU")
    assert found["answer"] == {name: True for name in ("kernel", "moved", "parallel", "graph", "pinned", "ipc")}
    assert found["reason"] == "exited"
    print(f"fork to confined {found['spawned_s'] * 1e3:.0f} ms, kernel {found['answered_s']:.2f} s")
