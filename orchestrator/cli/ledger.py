"""`ledger`: the index over all runs."""

from __future__ import annotations

import sys

import typer

from orchestrator.cli import options
from orchestrator.errors import UsageError

_WIDE = 200  # columns where there is no terminal


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...", no_args_is_help=True)
    group.command("rebuild")(rebuild)
    group.command("costs")(costs)
    group.callback()(_group)
    app.add_typer(group, name="ledger", help="The index over all runs: `ledger costs`, `ledger rebuild`.")


def _group() -> None:
    """The index over all runs."""


def costs(workspaces: options.Workspaces = options.WORKSPACES) -> None:
    """What runs have cost, by op, model and first prompt, and how much of it an accepted kernel took.

    Accepted is merged, or correct where nothing could be measured.
    """
    from rich.console import Console

    from orchestrator import accounts, ledger

    if not (workspaces / ledger.NAME).is_file():
        raise UsageError(f"there is no ledger in {workspaces}; --workspaces DIR names another place")
    index = ledger.Ledger(workspaces)
    try:
        if found := accounts.groups(index):
            Console(width=None if sys.stdout.isatty() else _WIDE).print(accounts.table(found))
        else:
            typer.echo("no run has asked a model yet")
    finally:
        index.close()


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
