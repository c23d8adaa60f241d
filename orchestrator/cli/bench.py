"""`bench`: a kernel file by itself, judged and measured beside the op's baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench")(bench_file)


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
    from orchestrator import bench, library

    if op is None:
        raise UsageError("nothing to measure it by: give --op NAME; `python -m orchestrator ops` lists the ops")
    settings = options.settings(config, override, options.strictness(require_idle, require_sandbox))
    asked, terminal = options.op(op, ops_dir), carry.terminal(to_stderr=json)
    result = carry.carried(
        lambda: library.measure(file, op=asked, dtypes=tuple(dtype or ()), out=out, settings=settings, watch=terminal),
        terminal,
    )
    typer.echo(bench.to_json(result) if json else bench.to_text(result))
    raise typer.Exit(bench.exit_code(result))
