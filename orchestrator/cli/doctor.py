"""`doctor`: whether a run could work here."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli import options


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(examine_machine)


def examine_machine(
    agent: options.Agent = None,
    device: options.Device = None,
    require_sandbox: options.RequireSandbox = False,
    workspaces: options.Workspaces = options.WORKSPACES,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check whether a run could work here, and say what to do.

    Exit code 0 when it could, 1 when something lacks that it cannot do without.
    """
    from orchestrator import doctor
    from orchestrator.agents.choose import check_name
    from orchestrator.doctor.condition import Asked

    given = {"agent": {"name": agent}, **options.judge(device, require_sandbox=require_sandbox)}
    settings = options.settings(config, override, given)
    check_name(settings.agent.name)
    conditions = doctor.examine(Asked(settings, workspaces))
    typer.echo(doctor.to_json(conditions) if json else doctor.to_text(conditions))
    raise typer.Exit(doctor.exit_code(conditions))
