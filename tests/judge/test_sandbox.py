"""Each attack of attacks.py is refused when confined, as root and as a user, and succeeds without confinement."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.judge import landlock, sandbox, scratch, seccomp, surroundings
from orchestrator.tree import remove_tree
from tests.judge.attacks import ATTACKS, NEEDED, ROOT_ONLY, SECRET
from tests.judge.conftest import Run

USERS = ("root", "user")
MACHINE = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def confined(run_script: Run, user: str) -> dict[str, Any]:
    answers: dict[str, Any] = run_script(user, "attacks.py", "confined", SECRET)
    return answers


def missing(answers: dict[str, Any]) -> list[str]:
    return [f"{piece['name']}: {piece['detail']}" for piece in answers["pieces"] if not piece["held"]]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused(run_script: Run, user: str, name: str) -> None:
    answers = confined(run_script, user)
    answer = answers["attacks"][name]
    if answer == "allowed" and missing(answers):
        pytest.skip(f"this kernel lacks {missing(answers)}")
    assert answer.startswith("refused"), answer


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_succeeds_without_confinement(run_script: Run, user: str, name: str) -> None:
    """Otherwise the test above shows nothing."""
    if user == "user" and name in ROOT_ONLY:
        pytest.skip("refused to an ordinary user anyway")
    answer = run_script(user, "attacks.py", "free", SECRET)["attacks"][name]
    if answer.startswith("refused"):
        pytest.skip(f"this machine refuses it without confinement too: {answer}")
    assert answer == "allowed"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", NEEDED)
def test_what_an_honest_kernel_needs_works(run_script: Run, user: str, name: str) -> None:
    if run_script(user, "attacks.py", "free", SECRET)["needed"][name] != "allowed":
        pytest.skip("does not work without confinement either")
    assert confined(run_script, user)["needed"][name] == "allowed"


@pytest.mark.parametrize("user", USERS)
def test_no_privilege_is_left(run_script: Run, user: str) -> None:
    status = confined(run_script, user)["status"]
    assert status["NoNewPrivs"] == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", *(["CapBnd"] if user == "root" else [])):
        assert int(status[name], 16) == 0, name


def test_probe_says_what_a_confined_child_found() -> None:
    names = [piece.name for piece in sandbox.probe()]
    assert len(names) == len(set(names)) == 14
    assert {"network namespace", "no capabilities", "file rules", "signals kept inside", "system call filter"} <= {
        *names
    }


@pytest.mark.parametrize(
    ("version", "lost"),
    [
        (0, {"file rules", "truncation refused", "TCP refused", "device ioctl refused", "signals kept inside"}),
        (1, {"file rules", "truncation refused", "TCP refused", "device ioctl refused", "signals kept inside"}),
        (3, {"TCP refused", "device ioctl refused", "signals kept inside"}),
        (5, {"signals kept inside"}),
    ],
)
def test_older_kernels_are_reported(monkeypatch: pytest.MonkeyPatch, version: int, lost: set[str]) -> None:
    if landlock.abi() < landlock.SCOPE_ABI:
        pytest.skip(f"Landlock ABI {landlock.abi()} here; an older one is played on a newer")
    monkeypatch.setattr(landlock, "abi", lambda: version)
    reported = {piece.name: piece.detail for piece in sandbox.probe() if not piece.held}
    assert reported.keys() == lost | {"abstract sockets kept inside"}
    assert all(re.search(r"ABI \d is needed: \w+", detail) for detail in reported.values())


def test_a_refused_filter_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(seccomp, "refuse", refuse)
    details = [piece.detail for piece in sandbox.probe() if not piece.held]
    assert len(details) == 1
    assert "chmod" in details[0]


def test_readable_paths_hold_neither_home_nor_checkout() -> None:
    secrets = [Path.home().resolve(), Path(sandbox.__file__).resolve().parents[2], Path("/etc/shadow")]
    for path in surroundings.readable_paths():
        assert not any(secret.is_relative_to(path.resolve()) for secret in secrets), path


def test_a_root_that_holds_the_home_is_granted_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lib", "src/home/secrets", "src/other"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(surroundings, "_SYSTEM", (tmp_path,))
    monkeypatch.setenv("HOME", str(tmp_path / "src" / "home"))
    granted = {path for path in surroundings.readable_paths() if path.is_relative_to(tmp_path)}
    assert granted == {tmp_path / "lib", tmp_path / "src" / "other"}


@pytest.mark.skipif(not MACHINE.exists(), reason="no kernel headers to compare with")
def test_call_numbers_are_those_of_the_kernel() -> None:
    known = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", MACHINE.read_text())}
    ours = {name: numbers[0] for name, numbers in seccomp._REFUSED.items()}
    assert {name: ours[name] for name in ours.keys() & known.keys()} == {
        n: known[n] for n in ours.keys() & known.keys()
    }
    assert len(ours.keys() & known.keys()) > 60


def test_scratch_is_measured_without_following_links(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "scratch"
    outside.mkdir()
    inside.mkdir()
    (outside / "big").write_bytes(b"x" * (1 << 20))
    (inside / "link").symlink_to(outside)
    assert scratch.excess(inside, 1 << 19, 10) == ""
    (inside / "big").write_bytes(b"x" * (1 << 20))
    assert "limit is 0 MiB" in scratch.excess(inside, 1 << 19, 10)


def test_removing_scratch_neither_follows_links_nor_minds_depth(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "scratch"
    outside.mkdir()
    (outside / "kept").touch()
    inside.mkdir()
    (inside / "moved-0").symlink_to(outside)
    here = os.open(inside, os.O_RDONLY)
    for _ in range(1500):  # deeper than Python recurses, and than a path can name
        os.mkdir("deep", dir_fd=here)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    (inside / "closed").mkdir(0o000)
    remove_tree(inside)
    assert not inside.exists()
    assert (outside / "kept").exists()
