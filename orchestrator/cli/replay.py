"""`explain` and `replay`: why an attempt was decided so, and whether it would be again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.replay import Replayed, Stored

Named = Annotated[str, typer.Argument(metavar="RUN[#ATTEMPT]", help="The run's id, and the number of an attempt.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("explain")(explain_run)
    app.command("replay")(replay_run)


def explain_run(
    run: Named, workspaces: options.Workspaces = options.WORKSPACES, ops_dir: options.OpsDir = None
) -> None:
    """Say in ten lines why a run, or one attempt of it, was decided so."""
    from orchestrator import explain, past

    run_id, number = past.parse(run)
    found = past.find(run_id, workspaces)
    if number is not None:
        lines = explain.attempt(found.attempt(number))
    else:
        thresholds = options.op(found.run.op, ops_dir).spec.thresholds(found.settings().decision)
        lines = explain.run(found.run, thresholds)
    carry.terminal(to_stderr=False).say("\n".join(lines))


def replay_run(
    run: Named,
    workspaces: options.Workspaces = options.WORKSPACES,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    json: Annotated[bool, typer.Option("--json", help="Print both verdicts as JSON; progress goes to stderr.")] = False,
) -> None:
    """Judge a stored attempt again, with the same seed.

    All attempts of a run where none is named; with the settings of then. Exit code 0 when each has the same verdict as
    then, 1 when one has another.
    """
    from orchestrator import past, records, replay, rounds, verifying

    run_id, number = past.parse(run)
    stored = replay.stored(past.find(run_id, workspaces), options.catalogue(ops_dir).load)
    every = [one.number for one in stored.past.run.attempts if rounds.answered(one)]
    numbers = every if number is None else [number]
    stored.past.attempt(max(numbers, default=1))
    terminal = carry.terminal(to_stderr=json)
    with verifying.judge_log() as log:
        results = carry.through(_replayed(stored, numbers, device, log, terminal.say), terminal)
    if json:
        typer.echo(records.to_json(results))
    raise typer.Exit(int(not all(one.same for one in results)))


async def _replayed(
    stored: Stored, numbers: list[int], device: str | None, log: Path, say: Callable[[str], None]
) -> tuple[Replayed, ...]:
    from orchestrator import replay

    results = []
    settings = options.settings(None, None, options.judge(device or replay.device(stored.past)))
    async with carry.judge(settings, log) as executor:
        for number in numbers:
            results.append(await replay.replay(stored, number, executor))
            say("\n".join(replay.lines(results[-1])))
    return tuple(results)
