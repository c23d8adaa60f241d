"""`ledger`: the index over all runs."""

from __future__ import annotations

import typer

from orchestrator.cli import options


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...", no_args_is_help=True)
    group.command("rebuild")(rebuild)
    group.callback()(_group)
    app.add_typer(group, name="ledger", help="The index over all runs; `ledger rebuild` makes it again.")


def _group() -> None:
    """A group even while it has one command."""


def rebuild(workspaces: options.Workspaces = options.WORKSPACES) -> None:
    """Make the ledger again from git and the run folders, which are the truth.

    Exit code 0 when every run could be read, 1 when one could not.
    """
    from orchestrator import ledger

    made = ledger.rebuild(workspaces)
    typer.echo(f"{workspaces / ledger.NAME}: {made.runs} runs")
    for line in made.unreadable:
        typer.echo(f"left out: {line}", err=True)
    raise typer.Exit(int(bool(made.unreadable)))
