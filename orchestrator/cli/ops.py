"""`ops`: the catalogue, an op as a model sees it, and whether an op's own checker is good enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.catalogue import Catalogue
    from orchestrator.config import Settings
    from orchestrator.draft import Draft
    from orchestrator.ops import Op
    from orchestrator.records import OpCheck
    from orchestrator.terminal import Terminal


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...")
    group.callback(invoke_without_command=True)(list_ops)
    group.command("show")(show_op)
    group.command("check")(check_ops)
    group.command("new")(new_op)
    app.add_typer(group, name="ops")


def list_ops(
    context: typer.Context,
    ops_dir: options.OpsDir = None,
    workspaces: options.Workspaces = options.WORKSPACES,
) -> None:
    """List the ops there are, and where each stands; `ops show` prints one as a model sees it, `ops new` begins one."""
    if context.invoked_subcommand is not None:
        return
    from orchestrator import standing

    known = options.catalogue(ops_dir)
    ops = {name: _read(known, name) for name in known.names()}
    stands = standing.of([op for op in ops.values() if not isinstance(op, UsageError)], workspaces)
    rows = [("op", "stage", "champion", "last decision", "")]
    for name, op in ops.items():
        of = stands.get(name, standing.Standing())
        rows.append((name, of.stage, of.champion, of.decision, _said_of(op)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        typer.echo(
            "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip()
        )


def _read(known: Catalogue, name: str) -> Op | UsageError:
    """The op, or what is wrong with its folder: one that a person is writing must not hide the others."""
    try:
        return known.load(name)
    except UsageError as error:
        return error


def _said_of(op: Op | UsageError) -> str:
    if isinstance(op, UsageError):
        return f"cannot be read: {op}"
    return op.spec.title if op.spec.approved else f"{op.spec.title} (a draft, not approved)"


def show_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The op.")], ops_dir: options.OpsDir = None
) -> None:
    """Print an op's specification as a model sees it."""
    typer.echo(options.op(name, ops_dir).workspace_files()["SPEC.md"].decode().rstrip())


def new_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the op is to be called.")],
    sentence: Annotated[
        str | None, typer.Option("--from", metavar="TEXT", help="Have a model draft it from this sentence.")
    ] = None,
    ops_dir: options.OpsDir = None,
    agent: options.Agent = None,
    model: options.Model = None,
    rounds: options.Rounds = None,
    device: options.Device = None,
    workspaces: options.Workspaces = options.WORKSPACES,
    config: options.Config = None,
    override: options.Override = None,
) -> None:
    """Write a folder for an op of your own, with comments; or, with --from, have a model draft it.

    Exit code 1 when a draft does not pass its check; it is yours to mend. No run starts on it until you approve it.
    """
    from orchestrator import catalogue

    folder, check = catalogue.place(name, ops_dir), _command("ops", "check", name, ops_dir=ops_dir)
    if sentence is None:
        catalogue.add(folder, catalogue.template(name))
        typer.echo(f"{folder}: write what it computes into op.yaml (semantics) and reference.py, change what differs,")
        typer.echo(f"then `{check}`; it is a draft until op.yaml says approved: true")
        return
    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent, "model": model},
        "loop": {"rounds": rounds},
        **options.judge(device),
    }
    settings = options.settings(config, override, given)
    terminal = carry.terminal(to_stderr=False)
    drafted = carry.through(_drafted(name, sentence, settings, workspaces, terminal), terminal)
    if not drafted.files:
        raise UsageError(f"no op came of it, and nothing is written: {drafted.problem}; the record is in {workspaces}")
    catalogue.add(folder, drafted.files)
    terminal.say(drafted.problem or f"{name}: every decoy is rejected")
    terminal.say(f"{folder}: read op.yaml and reference.py, mend them, `{check}`, then set approved: true in op.yaml")
    raise typer.Exit(int(bool(drafted.problem)))


async def _drafted(name: str, sentence: str, settings: Settings, workspaces: Path, terminal: Terminal) -> Draft:
    from orchestrator import draft
    from orchestrator.agents.choose import choose
    from orchestrator.asking import Asking, Purse
    from orchestrator.recorder import new_id

    agent, why = choose(
        settings.agent.name,
        op_recorded=None,
        single_op=True,
        options=settings.agent.options(require_sandbox=settings.judge.require_sandbox),
        announce=terminal.say,
    )
    terminal.say(why)
    asking = Asking(agent, (Purse("op", settings.budget.op),))
    record = workspaces / draft.FOLDER / new_id(name)
    async with carry.judge(settings, workspaces / "judge.log") as executor:
        return await draft.draft(name, sentence, asking, executor, settings, record, terminal.say)


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
    from orchestrator import opcheck, records, verifying

    settings = options.settings(config, override, options.judge(device, quick))
    known = options.catalogue(ops_dir)
    chosen = [known.load(name) for name in names or known.names()]
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
