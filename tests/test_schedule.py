"""What `schedule` prints, put to those who have to read it: systemd, a shell, a YAML reader."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from orchestrator import schedule
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.schedule import SERVICE, TIMER, Schedule

RECORDER = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done > "$RECORDED"
printf '%s\\n' "$NIGHT_KEY" "$PWD" >> "$RECORDED"
"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Schedule:
    """A schedule whose paths have blanks, quotes and percent signs, and whose interpreter notes what it is given."""
    place = tmp_path / "my 100% 'own' $HOME place"
    place.mkdir()
    (place / "nightly.yaml").write_text("night: {}\n")
    (place / "environment").write_text("NIGHT_KEY='a b'\n")
    (place / "python").write_text(RECORDER)
    (place / "python").chmod(0o755)
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    return schedule.new("23:05", Path("nightly.yaml"), Path("work spaces"), Path("environment"))


def test_a_crontab_line_runs_the_night(odd: Schedule, tmp_path: Path) -> None:
    *comments, line = schedule.cron(odd).splitlines()
    assert all(comment.startswith("#") for comment in comments)
    minute, hour, *days, command = line.split(" ", 5)
    assert (minute, hour, days) == ("5", "23", ["*", "*", "*"])
    assert "%" not in command.replace(r"\%", ""), "cron ends a line at a bare percent sign"
    recorded = tmp_path / "recorded"
    environment = {"PATH": os.environ["PATH"], "RECORDED": str(recorded), "HOME": "/nowhere"}
    subprocess.run(["/bin/sh", "-c", command.replace(r"\%", "%")], check=True, cwd="/", env=environment)
    told = recorded.read_text().splitlines()
    assert told == [*odd.command[1:], "a b", str(odd.directory)]
    assert (odd.workspaces / "nightly.log").is_file()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
@pytest.mark.parametrize("user", [None, "root"])
def test_systemd_takes_the_units(odd: Schedule, user: str | None, tmp_path: Path) -> None:
    units = schedule.systemd(odd, user)
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in units)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "orchestrator-nightly" in line]
    assert done.returncode == 0 and ours == [], done.stderr
    assert ("User=root" in units[SERVICE]) is (user == "root")
    assert "OnCalendar=*-*-* 23:05:00" in units[TIMER]
    broken = units[SERVICE].replace("/usr/bin/env", "/usr/bin/no-such-program")
    (tmp_path / SERVICE).write_text(broken)
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0, "it can refuse"


def test_the_words_of_a_unit_are_quoted() -> None:
    paths = (Path(path) for path in ("/c d", "/w%h", "/e", "/$HOME"))
    service = schedule.systemd(Schedule("02:30", *paths))[SERVICE]
    assert '-c "/c d" --workspaces /w%%h\n' in service and "WorkingDirectory=/$HOME\n" in service


def test_the_workflow_is_yaml(odd: Schedule) -> None:
    text = schedule.github(odd)
    workflow = yaml.safe_load(text)
    assert workflow[True]["schedule"] == [{"cron": "5 23 * * *"}]  # YAML 1.1 takes `on` for a truth
    commands = [step.get("run") for step in workflow["jobs"]["nightly"]["steps"]]
    assert "python -m orchestrator nightly -c nightly.yaml --workspaces workspaces" in commands
    assert workflow["jobs"]["nightly"]["env"]["OPENAI_API_KEY"] == "${{ secrets.OPENAI_API_KEY }}"
    with pytest.raises(UsageError, match="a checkout will not hold it"):
        schedule.github(Schedule("02:30", Path("/elsewhere.yaml"), odd.workspaces, odd.environment_file, odd.directory))


def test_what_cannot_be_scheduled(odd: Schedule) -> None:
    for at in ("24:00", "2:30", "02:60", "soon"):
        with pytest.raises(UsageError, match="HH:MM"):
            schedule.new(at, odd.config, odd.workspaces, odd.environment_file)
    with pytest.raises(UsageError, match="there is no file"):
        schedule.new("02:30", Path("none.yaml"), odd.workspaces, odd.environment_file)
    with pytest.raises(UsageError, match="no timer can quote"):
        schedule.new("02:30", odd.config, Path("a\nb"), odd.environment_file)


def systemctl(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    """A systemctl that notes what it is asked."""
    folder.mkdir()
    (folder / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\necho no bus >&2\nexit {code}\n')
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(folder))
    return folder / "asked"


def test_a_timer_of_ones_own_is_installed(odd: Schedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = systemctl(tmp_path / "there", monkeypatch, 0)
    service, timer = schedule.install(odd)
    assert "User=" not in service.read_text() and timer.read_text() == schedule.systemd(odd)[TIMER]
    assert service.parent == tmp_path / "there" / ".config" / "systemd" / "user"
    wanted = ["--user show-environment", "--user daemon-reload", f"--user enable --now {TIMER}"]
    assert asked.read_text().splitlines() == wanted


def test_where_there_is_no_systemd_nothing_is_written(
    odd: Schedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl(tmp_path / "none", monkeypatch, 1)
    with pytest.raises(InfrastructureError, match="--install needs the user's own systemd.*no bus"):
        schedule.install(odd)
    assert not (tmp_path / "none" / ".config").exists()
