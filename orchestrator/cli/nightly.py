"""`nightly`: every champion judged again, new kernels where it pays, and a report against the last night's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options

if TYPE_CHECKING:
    from orchestrator.batch import Agents
    from orchestrator.catalogue import Catalogue
    from orchestrator.config import Settings
    from orchestrator.nights.story import Night
    from orchestrator.progress import Progress

_NEEDS = "a night that generates needs a model (-c night.generate=[] leaves generating out)"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("nightly")(nightly)


def nightly(
    config: options.Config = None,
    override: options.Override = None,
    agent: options.Agent = None,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    quick: options.Quick = None,
    require_sandbox: options.RequireSandbox = False,
    workspaces: options.Workspaces = options.WORKSPACES,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print what the night came to, and nothing before.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the night's record as JSON; lines go to stderr.")] = False,
) -> None:
    """Judge every champion again, generate what is due.

    A champion that fails is demoted; the report compares with the last night.

    Exit code 1 on a regression, 3 where something could not be judged; a night that was killed goes on the next time.
    """
    from rich.console import Console

    from orchestrator import plan, records
    from orchestrator.batch import Agents
    from orchestrator.nights import night, report, story, webhook
    from orchestrator.progress import Progress

    given = {"agent": {"name": agent}, **options.judge(device, quick, None, require_sandbox)}
    settings, catalogue = options.settings(config, override, given), options.catalogue(ops_dir)
    if settings.night.ops:
        plan.named(",".join(settings.night.ops), catalogue.names, where="night.ops")
    url = webhook.address() if settings.night.webhook != "none" else ""
    progress = Progress(Console(stderr=json), quiet=quiet)
    agents = Agents(progress.say, _NEEDS)
    if settings.night.generate:
        agents.prepare(settings)
    with night.held(workspaces):
        ended = carry.through(
            _night(settings, catalogue, workspaces, agents, progress),
            progress,
            "interrupted; the next `nightly` goes on with it",
        )
    typer.echo(records.to_json(ended) if json else report.in_lines(ended))
    typer.echo(f"report: {ended.begun.folder(workspaces) / story.REPORT}", err=json)
    code = ended.exit_code
    if url:
        try:
            webhook.send(url, webhook.message(ended, report.in_lines(ended), settings.night.webhook))
        except webhook.NotDelivered as error:
            typer.echo(f"error: {error}", err=True)
            code = code or error.exit_code
    raise typer.Exit(code)


async def _night(
    settings: Settings, catalogue: Catalogue, workspaces: Path, agents: Agents, progress: Progress
) -> Night:
    from orchestrator.executors import pool
    from orchestrator.ledger import Ledger
    from orchestrator.nights import night

    index = Ledger(workspaces)
    judges = pool.of(settings.judge, settings.night.judges, workspaces)
    try:
        means = night.Means(workspaces, catalogue.names(), catalogue.load, settings, judges, agents, index, progress)
        return await night.carry_out(means)
    finally:
        await judges.close()
        index.close()
