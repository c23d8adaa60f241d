"""A night at a fixed hour: a systemd unit and timer, a crontab line, a GitHub workflow, ready for this machine's paths.

Owns what is printed and how each of the three quotes, and installing a timer for the user's own systemd. Holds no key:
what is printed names a file of variables, or the host's secrets.
"""

from __future__ import annotations

import getpass
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from orchestrator import resources
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.text import printable
from orchestrator.tree import os_errors, write_whole

SERVICE, TIMER = "orchestrator-nightly.service", "orchestrator-nightly.timer"
ENVIRONMENT_FILE = Path("~/.config/orchestrator/environment")
_UNITS = Path("~/.config/systemd/user")
_SYSTEMCTL_S = 30


@dataclass(frozen=True)
class Schedule:
    """When a night begins, and with what. Paths are absolute."""

    at: str  # HH:MM
    config: Path
    workspaces: Path
    environment_file: Path
    directory: Path

    @property
    def command(self) -> list[str]:
        """What is to be run."""
        night = ["-m", "orchestrator", "nightly", "-c", str(self.config), "--workspaces", str(self.workspaces)]
        return [sys.executable, *night]

    @property
    def hour(self) -> int:
        """Of the day."""
        return int(self.at.partition(":")[0])

    @property
    def minute(self) -> int:
        """Of the hour."""
        return int(self.at.partition(":")[2])


def new(at: str, config: Path, workspaces: Path, environment_file: Path) -> Schedule:
    """A schedule for here. Raises UsageError for a time or a settings file that cannot be."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", at):
        raise UsageError(f"--at {printable(repr(at))}: give a time of the day as HH:MM, such as 02:30")
    if not config.is_file():
        raise UsageError(f"there is no file {printable(str(config))}; -c FILE names the settings of a night")
    paths = [path.expanduser().absolute() for path in (config, workspaces, environment_file, Path.cwd())]
    if strange := [path for path in map(str, paths) if not path.isprintable()]:
        raise UsageError(f"{printable(repr(strange[0]))} holds what no timer can quote; use another path")
    return Schedule(at, *paths)


def systemd(schedule: Schedule, user: str | None = None) -> dict[str, str]:
    """The units by file name. With a user they are for the machine's systemd, without for the user's own."""
    service = _rendered(
        f"{SERVICE}.j2",
        user=user,
        directory=schedule.directory,
        environment_file=schedule.environment_file,
        command=schedule.command,
    )
    return {SERVICE: service, TIMER: _rendered(f"{TIMER}.j2", at=schedule.at)}


def cron(schedule: Schedule) -> str:
    """A crontab line for the user who runs this."""
    variables, log = (
        shlex.quote(str(path)) for path in (schedule.environment_file, schedule.workspaces / "nightly.log")
    )
    steps = (
        f"cd {shlex.quote(str(schedule.directory))}",
        f"mkdir -p {shlex.quote(str(schedule.workspaces))}",
        f"{{ [ ! -f {variables} ] || {{ set -a; . {variables}; set +a; }}; }}",
        f"{shlex.join(schedule.command)} >> {log} 2>&1",
    )
    line = " && ".join(steps)
    escaped = line.replace("%", r"\%")  # else cron ends the line there
    return _rendered("crontab.j2", hour=schedule.hour, minute=schedule.minute, line=escaped)


def github(schedule: Schedule) -> str:
    """A workflow, with the settings file as it is called in the checkout."""
    try:
        config = schedule.config.relative_to(schedule.directory)
    except ValueError:
        raise UsageError(
            f"{schedule.config} is not below {schedule.directory}, so a checkout will not hold it"
        ) from None
    return _rendered("workflow.yml.j2", hour=schedule.hour, minute=schedule.minute, config=shlex.quote(str(config)))


def install(schedule: Schedule) -> tuple[Path, ...]:
    """Put the timer into the user's systemd and start it. Returns the files. Raises where there is no such systemd."""
    _systemctl("show-environment")  # before anything is written
    folder = _UNITS.expanduser()
    with os_errors(f"make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in systemd(schedule).items():
        write_whole(folder / name, text)
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", TIMER)
    return tuple(folder / name for name in (SERVICE, TIMER))


def whoami() -> str:
    """The user who runs this."""
    return getpass.getuser()


def _systemctl(*arguments: str) -> None:
    command = ["systemctl", "--user", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SYSTEMCTL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(_no_systemd(str(error))) from error
    if done.returncode:
        raise InfrastructureError(_no_systemd(done.stderr.strip() or f"exit code {done.returncode}"))


def _no_systemd(why: str) -> str:
    return (
        f"--install needs the user's own systemd, and `systemctl --user` says: {printable(why, 200)}; use --cron, or \
print the units with --systemd"
    )


def _rendered(template: str, **facts: object) -> str:
    folder = resources.templates() / "schedule"
    environment = resources.environment(folder, quoted=_quoted, path=_path, unit=_escaped)
    return environment.get_template(template).render(**facts)


def _escaped(value: object) -> str:
    """A value in a unit file: a percent sign would begin a specifier."""
    return str(value).replace("%", "%%")


def _path(value: Path) -> str:
    """A path in a unit file's setting of one path, which is not split at blanks."""
    return _escaped(value)


def _quoted(word: str) -> str:
    """A word of ExecStart, after its first: a program's own path may hold no quotes there, so `env` starts it."""
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[^A-Za-z0-9_./:=%+-]", word) else escaped
