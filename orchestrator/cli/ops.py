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
    group.command("new")(new_op)
    app.add_typer(group, name="ops")


def list_ops(context: typer.Context, ops_dir: options.OpsDir = None) -> None:
    """List the ops there are; `ops show` prints one as a model sees it, `ops new` begins another."""
    if context.invoked_subcommand is None:
        known = options.catalogue(ops_dir)
        for name in known.names():
            typer.echo(f"{name:<24} {known.load(name).spec.title}")


def show_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The op.")], ops_dir: options.OpsDir = None
) -> None:
    """Print an op's specification as a model sees it."""
    typer.echo(options.op(name, ops_dir).workspace_files()["SPEC.md"].decode().rstrip())


def new_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the op is to be called.")],
    ops_dir: options.OpsDir = None,
) -> None:
    """Write a folder for an op of your own, with comments: what is left to write is what it computes."""
    from orchestrator import catalogue

    folder = catalogue.place(name, ops_dir)
    catalogue.add(folder, catalogue.template(name))
    typer.echo(f"{folder}: write what it computes into op.yaml (semantics) and reference.py, change what differs, then")
    typer.echo(f"`{_command('ops', 'check', name, ops_dir=ops_dir)}`; it is a draft until op.yaml says approved: true")


def _command(*words: str, ops_dir: Path | None) -> str:
    """How a person calls us again for the same folder of ops."""
    return " ".join(["python -m orchestrator", *words, *([] if ops_dir is None else ["--ops-dir", str(ops_dir)])])


def check_ops(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]", help="Ops. [default: all]")] = None,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    quick: options.Quick = None,
    config: options.Config = None,
    override: options.Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Try each op's checker on decoys: wrong kernels made from its reference, all of which must be rejected.

    Exit code 0 when they are, 1 when one is let through.
    """
    from orchestrator import opcheck, records, verify

    settings = options.settings(config, override, options.judge(device, quick))
    known = options.catalogue(ops_dir)
    chosen = [known.load(name) for name in names or known.names()]
    terminal = carry.terminal(to_stderr=False)
    with verify.judge_log() as log:
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
