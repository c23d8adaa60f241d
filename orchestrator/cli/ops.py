"""`ops`: the catalogue, an op as a model sees it, and whether an op's own checker is good enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.ops import Op
    from orchestrator.records import OpCheck


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...")
    group.callback(invoke_without_command=True)(list_ops)
    group.command("show")(show_op)
    group.command("check")(check_ops)
    app.add_typer(group, name="ops")


def list_ops(context: typer.Context) -> None:
    """List the ops there are; `ops show` prints one as a model sees it, `ops check` checks their checkers."""
    from orchestrator import ops

    if context.invoked_subcommand is None:
        for name in ops.names(options.ops_root()):
            typer.echo(f"{name:<24} {options.op(name).spec.title}")


def show_op(name: Annotated[str, typer.Argument(metavar="NAME", help="The op.")]) -> None:
    """Print an op's specification as a model sees it."""
    typer.echo(options.op(name).workspace_files()["SPEC.md"].decode().rstrip())


def check_ops(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]", help="Ops. [default: all]")] = None,
    device: options.Device = None,
    quick: options.Quick = None,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Try each op's checker on decoys: wrong kernels made from its reference, all of which must be rejected.

    Exit code 0 when they are, 1 when one is let through.
    """
    from orchestrator import opcheck, ops, records, verifying

    settings = options.settings(config, override, options.judge(device, quick))
    chosen = [options.op(name) for name in names or ops.names(options.ops_root())]
    terminal = carry.terminal(to_stderr=False)
    with verifying.judge_log() as log:
        results = carry.through(_checked(chosen, settings, log, quiet=json), terminal)
    if json:
        typer.echo(records.to_json(results))
    raise typer.Exit(opcheck.exit_code(results))


async def _checked(chosen: list[Op], settings: Settings, log: Path, *, quiet: bool) -> tuple[OpCheck, ...]:
    from orchestrator import opcheck

    results = []
    async with carry.judge(settings, log) as executor:
        for op in chosen:
            results.append(await opcheck.check(op, executor, quick=settings.judge.quick))
            if not quiet:
                typer.echo("\n".join(opcheck.lines(results[-1])))
    return tuple(results)
