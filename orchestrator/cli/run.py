"""A run of one op, a batch of several, or the first prompt alone: what the command does without a subcommand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator import __version__
from orchestrator.cli import batch as batches
from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.ops import Op
    from orchestrator.records import Run


def register(app: typer.Typer) -> None:
    """Adds what runs without a subcommand."""
    app.callback(invoke_without_command=True)(run)


def run(
    context: typer.Context,
    op: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The op to write a kernel for; `ops` lists them. Or kernelbench:FILE."),
    ] = None,
    ops: Annotated[
        str | None, typer.Option(metavar="NAMES", help="A batch: ops by commas, or all. Unattended, to the end.")
    ] = None,
    ops_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A batch: a YAML list of ops, each with settings of its own.")
    ] = None,
    ops_dir: options.OpsDir = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest batch, with these settings.")] = False,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a batch: as many ops at once. [default: 8]")
    ] = None,
    judges: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a batch: as many judges. [default: one a GPU]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Of a batch: print the table at the end only.")] = False,
    agent: options.Agent = None,
    model: options.Model = None,
    command: Annotated[
        str | None,
        typer.Option(metavar="LINE", help="Of the agent command: what to run, or a preset's name, such as claude."),
    ] = None,
    rounds: options.Rounds = None,
    samples: options.Samples = None,
    stages: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="In this order, by commas. [default: correct,launch,optimize,tune]"),
    ] = None,
    begin_from: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="A kernel of yours: judged and measured, then improved from there."
        ),
    ] = None,
    persist: Annotated[bool, typer.Option("--persist", help="Go on with the stages left, also at parity.")] = False,
    executor: Annotated[
        str | None, typer.Option(metavar="WHICH", help="Who judges: local, or ray for a cluster. [default: local]")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the Ray cluster. [default: RAY_ADDRESS, else one of here]")
    ] = None,
    device: options.Device = None,
    quick: options.Quick = None,
    seed: options.Seed = None,
    require_sandbox: options.RequireSandbox = False,
    require_idle: options.RequireIdle = False,
    workspaces: options.Workspaces = options.WORKSPACES,
    config: options.Config = None,
    override: options.Override = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the first prompt and stop.")] = False,
    json: options.Json = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """A language model writes a Triton kernel; a judge decides whether it may stay.

    python -m orchestrator --op rmsnorm
    """
    if context.invoked_subcommand is not None:
        return
    if version:
        typer.echo(f"orchestrator {__version__}")
        return
    many = ops is not None or ops_file is not None or resume
    if op is None and not many:
        raise UsageError(
            "nothing to do: give --op NAME, or --ops NAMES for a batch; `python -m orchestrator ops` lists the ops"
        )
    if (op is not None) + (ops is not None) + (ops_file is not None) > 1 or (op is not None and resume):
        raise UsageError("--op is one run, --ops or --ops-file a batch, --resume goes on with one: give one of them")
    if begin_from is not None and (many or dry_run):
        raise UsageError("--from is for a run of one op, and what a model is asked follows from the verdict: --op NAME")
    if many and dry_run:
        raise UsageError("--dry-run prints the first prompt of one op: give --op NAME")
    if not many and (concurrency is not None or judges is not None or quiet):
        raise UsageError("--concurrency, --judges and --quiet are of a batch: give --ops NAMES")
    if command is not None and agent not in (None, "command"):
        raise UsageError(f"--command is of the agent command, and --agent {agent} was given: give one of them")
    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent or ("command" if command else None), "model": model, "command": command},
        "loop": {
            "rounds": rounds,
            "samples": samples,
            "stages": stages.split(",") if stages is not None else None,
            "persist": persist or None,
            "given": begin_from,
        },
        "judge": options.judge(device, quick, seed, require_sandbox)["judge"]
        | {"executor": executor, "ray_address": ray_address},
        "measure": {"require_idle": require_idle or None},
    }
    if op is None:
        asked = batches.Asked(ops, ops_file, ops_dir, resume, concurrency or 8, judges, quiet, json)
        raise typer.Exit(
            batches.carry_out(asked, lambda own: options.settings(config, override, given, own), workspaces)
        )
    settings, wanted = options.settings(config, override, given), options.op(op, ops_dir)
    if dry_run:
        raise typer.Exit(first_prompt(wanted, settings))
    raise typer.Exit(carried_out(wanted, settings, workspaces, as_json=json))


def carried_out(op: Op, settings: Settings, workspaces: Path, *, as_json: bool) -> int:
    """One run of the op, from its first prompt to its decision; returns the exit code."""
    from orchestrator import library, records

    terminal = carry.terminal(to_stderr=as_json)
    finished = carry.carried(
        lambda: library.run_op(op, workspaces=workspaces, settings=settings, watch=terminal, say=terminal.say),
        terminal,
        lambda: f"interrupted; the record so far is in {terminal.folder}" if terminal.folder else "interrupted",
    )
    if line := _next(finished, workspaces):
        terminal.say(line)
    if as_json:
        typer.echo(records.to_json(finished))
    return finished.exit_code


def _next(finished: Run, workspaces: Path) -> str:
    """What there is to do with the kernel of a run; "" where none was accepted."""
    from orchestrator.records import Decision

    run, decision = finished.id, finished.verdict.decision if finished.verdict else None
    commands = {
        Decision.UNMEASURED: (f"explain {run}", f"measure {run} (on a GPU)", f"adopt {run} --reason TEXT"),
        Decision.MERGE: (f"explain {run}", f"export {finished.op} --to DIR", "report"),
    }
    if decision not in commands:
        return ""
    elsewhere = "" if workspaces == options.WORKSPACES else f"; each with --workspaces {workspaces}"
    return f"next: {', '.join(commands[decision])}{elsewhere}"


def first_prompt(op: Op, settings: Settings) -> int:
    """Print the first prompt. The judge is asked where it would judge, since the prompt says so; nothing is kept."""
    from orchestrator.agents.render import render
    from orchestrator.docs import cache
    from orchestrator.prompts import Prompts
    from orchestrator.records import Judging

    async def judging(log: Path) -> Judging:
        async with carry.judge(settings, log) as executor:
            return await executor.start()

    with tempfile.TemporaryDirectory() as folder:
        where = carry.through(judging(Path(folder) / "judge.log"), carry.terminal(to_stderr=True))
    guide = cache.ready(where.versions["triton"], settings.docs.folder)
    prompts = Prompts(op, where, settings.loop.rounds, guide, in_tree=settings.agent.in_tree)
    typer.echo(render(prompts.generate()))
    return 0
