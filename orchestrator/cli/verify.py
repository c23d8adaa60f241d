"""`verify`: kernel files before the judge, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.ops import Op
    from orchestrator.terminal import Terminal
    from orchestrator.verify import KernelFile, Verified


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
    from orchestrator import verify

    if op is None:
        raise UsageError("nothing to judge them by: give --op NAME; `python -m orchestrator ops` lists the ops")
    settings = options.settings(config, override, options.judge(device, quick, seed, require_sandbox))
    asked, read = options.op(op, ops_dir), verify.read(files)
    scripts = None if repro is None else verify.scripts_folder(repro)
    terminal = carry.terminal(to_stderr=json)
    results = judged(read, asked, settings, terminal, scripts)
    if json:
        typer.echo(verify.to_json(results))
    terminal.say(verify.summary(results, scripts))
    raise typer.Exit(verify.exit_code(results))


def judged(
    files: tuple[KernelFile, ...], op: Op, settings: Settings, terminal: Terminal, scripts: Path | None = None
) -> tuple[Verified, ...]:
    """The verdicts on the files, by a judge of their own."""
    from orchestrator import verify

    async def work(log: Path) -> tuple[Verified, ...]:
        async with carry.judge(settings, log) as executor:
            return await verify.verify(files, op, executor, settings.judge, terminal, scripts)

    with verify.judge_log() as log:
        return carry.through(work(log), terminal)
