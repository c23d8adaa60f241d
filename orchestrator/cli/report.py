"""`report`: a static site of what was run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(report_runs)


def report_runs(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Pages of this run alone.")] = None,
    last: Annotated[bool, typer.Option("--last", help="Of the newest run alone.")] = False,
    night: Annotated[bool, typer.Option("--night", help="Of the newest batch.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Of all runs. This is the default.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write it here. [default: report in the workspaces]")
    ] = None,
    workspaces: options.Workspaces = options.WORKSPACES,
    ops_dir: options.OpsDir = None,
) -> None:
    """Write a static site of what was run.

    All ops at a glance, a page an op, a page a run. It opens from the disk and asks no network. An op's page tells of
    all its runs, whichever have a page.
    """
    from orchestrator.report import gather, site

    if (run is not None) + last + night + everything > 1:
        raise UsageError("RUN, --last, --night and --all choose the runs that get a page: give one of them")
    choice = (
        gather.named(run) if run is not None else gather.last if last else gather.night if night else gather.everything
    )
    gathered = gather.gather(workspaces, choice, options.catalogue(ops_dir).load)
    first = site.write(gathered, out if out is not None else workspaces / "report")
    count = len(gathered.chosen)
    typer.echo(f"{first}: {count} run{'' if count == 1 else 's'}")
    for line in gathered.unreadable:
        typer.echo(f"left out: {line}", err=True)
