"""`schedule`: a night at a fixed hour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("schedule")(schedule_night)


def schedule_night(
    systemd: Annotated[bool, typer.Option("--systemd", help="A unit and a timer for the machine's systemd.")] = False,
    cron: Annotated[bool, typer.Option("--cron", help="A line for your crontab.")] = False,
    github: Annotated[bool, typer.Option("--github", help="A workflow of GitHub Actions.")] = False,
    install: Annotated[
        bool, typer.Option("--install", help="With --systemd: install it for your own systemd, and start it.")
    ] = False,
    at: Annotated[str, typer.Option(metavar="HH:MM", help="When; of a workflow, in UTC.")] = "02:30",
    config: Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="The settings of the nights.")] = Path(
        "configs/nightly.yaml"
    ),
    environment_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the keys are. [default: ~/.config/orchestrator/environment]"),
    ] = None,
    workspaces: options.Workspaces = options.WORKSPACES,
) -> None:
    """Print a timer that begins `nightly` every night.

    It has the paths and the user of here. Nothing is changed without --install.
    """
    from orchestrator import schedule

    if systemd + cron + github != 1 or (install and not systemd):
        raise UsageError("say how: --systemd (with --install, if it is to be installed), --cron or --github")
    wanted = schedule.new(at, config, workspaces, environment_file or schedule.ENVIRONMENT_FILE)
    if install:
        typer.echo("\n".join(f"installed {path}" for path in schedule.install(wanted)))
    elif systemd:
        for name, text in schedule.systemd(wanted, schedule.whoami()).items():
            typer.echo(f"# /etc/systemd/system/{name}\n{text}")
    else:
        typer.echo((schedule.cron if cron else schedule.github)(wanted).rstrip())
