"""`bench`: a kernel file by itself, judged and measured beside the op's baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.bench import Benched
    from orchestrator.config import Settings


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench")(bench_file)


def require_gpu(settings: Settings) -> None:
    """Before anything is started: to measure is to need a GPU.

    Raises:
        UsageError: there is none, or the CPU was asked for.
    """
    from orchestrator import finish, gpu

    if settings.judge.device == "cpu" or not gpu.present():
        raise UsageError(finish.NOTHING_TO_MEASURE_ON)


def bench_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A kernel file, of any name; - is standard input.")],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="The op it is a kernel of.")] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only with this dtype, no curve; may be repeated. [default: all]"),
    ] = None,
    ops_dir: options.OpsDir = None,
    require_idle: options.RequireIdle = False,
    require_sandbox: options.RequireSandbox = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the evidence here: measured.json, inductor/.")
    ] = None,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Judge a kernel file and measure it beside the op's baselines.

    Needs a GPU. Exit code 0 when it was measured, 1 when it is not correct.
    """
    from orchestrator import bench, verify

    if op is None:
        raise UsageError("nothing to measure it by: give --op NAME; `python -m orchestrator ops` lists the ops")
    settings = options.settings(config, override, options.strictness(require_idle, require_sandbox))
    require_gpu(settings)
    asked, (read,) = options.op(op, ops_dir), verify.read([file])
    terminal = carry.terminal(to_stderr=json)

    async def work(folder: Path, log: Path) -> Benched:
        async with carry.judge(settings, log) as executor:
            return await bench.bench(read, asked, executor, settings, terminal, folder, tuple(dtype or ()))

    with verify.judge_log() as log, verify.kept_or_temporary(out) as folder:
        result = carry.through(work(folder, log), terminal)
    typer.echo(bench.to_json(result) if json else bench.to_text(result))
    raise typer.Exit(bench.exit_code(result))
