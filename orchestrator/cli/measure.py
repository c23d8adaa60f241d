"""`measure` and `adopt`: a run that is taken up again, by a GPU or by a person."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("measure")(measure_run)
    app.command("adopt")(adopt_run)


def measure_run(
    run: options.RunId,
    workspaces: options.Workspaces = options.WORKSPACES,
    ops_dir: options.OpsDir = None,
    require_idle: options.RequireIdle = False,
    require_sandbox: options.RequireSandbox = False,
    config: options.Config = None,
    override: options.Override = None,
    json: options.Json = False,
) -> None:
    """Finish a run that was UNMEASURED.

    Its best kernel is judged again here, measured and decided. Needs a GPU; the workspaces may have been copied from
    another machine.
    """
    from orchestrator import library, records

    settings = options.settings(config, override, options.strictness(require_idle, require_sandbox))
    terminal = carry.terminal(to_stderr=json)
    finished = carry.carried(
        lambda: library.measure_run(
            run, workspaces=workspaces, ops_dir=ops_dir, settings=settings, watch=terminal, say=terminal.say
        ),
        terminal,
        f"interrupted; the record so far is in {workspaces / 'runs' / run}",
    )
    if json:
        typer.echo(records.to_json(finished))
    raise typer.Exit(finished.exit_code)


def adopt_run(
    run: options.RunId,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it goes into DECISION.md.")] = None,
    workspaces: options.Workspaces = options.WORKSPACES,
    ops_dir: options.OpsDir = None,
) -> None:
    """Merge the best kernel of a run, as a person's decision."""
    from orchestrator import finish
    from orchestrator.ledger import entered

    if reason is None:
        raise UsageError("say why this kernel is adopted: --reason TEXT; it goes into DECISION.md")
    ended = finish.find(run, workspaces, options.catalogue(ops_dir).load)
    with entered(workspaces, carry.terminal(to_stderr=False)) as watch:
        raise typer.Exit(finish.adopt(ended, reason, watch).exit_code)
