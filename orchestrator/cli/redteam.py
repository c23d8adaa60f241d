"""`redteam`: the judge put to the test with the corpora."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.redteam.entries import Entry
    from orchestrator.redteam.score import Score
    from orchestrator.terminal import Terminal


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("redteam")(redteam_judge)


def redteam_judge(
    only: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only files or kinds of this name, such as '*cache*'.")
    ] = None,
    sample: Annotated[int | None, typer.Option(metavar="N", help="Only N of them, evenly spread.")] = None,
    layer: Annotated[
        str, typer.Option(metavar="WHICH", help="Judge by the whole, by the runtime layer alone, or both.")
    ] = "both",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="As many judges at once.")] = 1,
    device: options.Device = None,
    quick: options.Quick = None,
    seed: options.Seed = None,
    require_sandbox: options.RequireSandbox = False,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON; progress goes to stderr.")] = False,
) -> None:
    """Put the judge to the test with the corpora.

    These are kernels that cheat or are wrong, and honest ones in many styles.

    Exit code 0 when every cheat that can be seen here is caught and every honest kernel accepted, 1 when not.
    """
    from orchestrator import records, verifying
    from orchestrator.redteam import entries, runner, score

    settings = options.settings(config, override, options.judge(device, quick, seed, require_sandbox))
    layers = runner.layers(layer)
    chosen = entries.select(entries.read(), only, sample)
    terminal = carry.terminal(to_stderr=json)
    with verifying.judge_log() as log:
        finished = carry.through(_judged(chosen, layers, settings, jobs, terminal, log), terminal)
    if json:
        typer.echo(records.to_json(finished))
    terminal.say("\n".join(score.table(finished)))
    raise typer.Exit(finished.exit_code)


async def _judged(
    chosen: tuple[Entry, ...], layers: tuple[str, ...], settings: Settings, jobs: int, terminal: Terminal, log: Path
) -> Score:
    from orchestrator.executors import pool
    from orchestrator.redteam import entries, runner

    jobs = min(jobs, len(chosen))
    judges = pool.of(settings.judge, jobs, log.parent)
    try:
        return await runner.run(chosen, layers, options.op(entries.OP), judges, jobs, settings.judge, terminal.say)
    finally:
        await judges.close()
