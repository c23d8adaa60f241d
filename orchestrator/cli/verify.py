"""`verify`: kernel files before the judge, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("verify")(verify_files)


def verify_files(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Kernel files, of any name; - is standard input.")
    ],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="The op they are kernels of.")] = None,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    quick: options.Quick = None,
    seed: options.Seed = None,
    require_sandbox: options.RequireSandbox = False,
    repro: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a script here for each failure: its smallest case alone.")
    ] = None,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON; progress goes to stderr.")] = False,
) -> None:
    """Judge kernel files, without a model.

    Exit code 0 when all of them pass, 1 when one does not.
    """
    from orchestrator import library, verifying

    if op is None:
        raise UsageError("nothing to judge them by: give --op NAME; `python -m orchestrator ops` lists the ops")
    settings = options.settings(config, override, options.judge(device, quick, seed, require_sandbox))
    asked, read = options.op(op, ops_dir), verifying.read(files)
    scripts = None if repro is None else verifying.scripts_folder(repro)
    terminal = carry.terminal(to_stderr=json)
    results = carry.carried(
        lambda: library.verify(*read, op=asked, settings=settings, watch=terminal, scripts=scripts), terminal
    )
    if json:
        typer.echo(verifying.to_json(results))
    terminal.say(verifying.summary(results, scripts))
    raise typer.Exit(verifying.exit_code(results))
