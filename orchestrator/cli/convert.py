"""`convert`: code that exists made into an op, and a kernel for it."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import carry, options, parts
from orchestrator.cli import run as runs
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.convert import Wanted
    from orchestrator.ops import Op
    from orchestrator.records import Run
    from orchestrator.terminal import Terminal


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("convert")(convert_code)


def convert_code(
    target: Annotated[
        str, typer.Argument(metavar="FILE.py:NAME", help="A function, a class, or a method as Class.method.")
    ],
    example: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A YAML file of what it is called with: shapes, dtypes.")
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="COMMAND", help='Run this, such as "python run.py", and take its calls.')
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The op's name. [default: from the code's]")] = None,
    ops_dir: options.OpsDir = None,
    replace: Annotated[bool, typer.Option("--replace", help="Convert anew where the folder is there already.")] = False,
    like: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Kernels of the project, shown as house style; may be repeated."),
    ] = None,
    backward: Annotated[
        str | None,
        typer.Option(
            metavar="WAY", help="Gradients too: kernel, checkpoint or compile; the record says what each costs."
        ),
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Make and check the op, and write no kernel.")] = False,
    probe_s: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="What running the code once more may take.")
    ] = 120,
    agent: options.Agent = None,
    model: options.Model = None,
    rounds: options.Rounds = None,
    device: options.Device = None,
    quick: options.Quick = None,
    seed: options.Seed = None,
    require_sandbox: options.RequireSandbox = False,
    require_idle: options.RequireIdle = False,
    workspaces: options.Workspaces = options.WORKSPACES,
    config: options.Config = None,
    override: options.Override = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make the op, print the first prompt and stop.")] = False,
    json: options.Json = False,
) -> None:
    """Make an op of code that exists, and have a kernel written for it.

    The code is cut out, run on the examples, its sizes varied; the op must pass `ops check` before a model is asked.
    The code runs as you would run it, without keys in its environment; its file is never changed.
    """
    from orchestrator import records

    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent, "model": model},
        "loop": {"rounds": rounds},
        **options.judge(device, quick, seed, require_sandbox),
        "measure": {"require_idle": require_idle or None},
    }
    settings = options.settings(config, override, given)
    wanted = _wanted(target, example, trace, name, ops_dir, replace, tuple(like or ()), probe_s, backward)
    terminal = carry.terminal(to_stderr=json or dry_run)
    ops = _converted(wanted, settings, terminal)
    if only:
        return
    if dry_run:
        raise typer.Exit(runs.first_prompt(ops[0], settings))
    kept = f"interrupted; the record so far is in {workspaces / 'runs'}"
    for op in ops:
        finished = carry.carried(partial(_run, op, settings, workspaces, probe_s, terminal), terminal, kept)
        if json:
            typer.echo(records.to_json(finished))
        if finished.exit_code:
            if op is not ops[-1]:
                terminal.say(f"{ops[-1].name}: not run, since {op.name} has no kernel")
            break
    raise typer.Exit(finished.exit_code)


def _run(op: Op, settings: Settings, workspaces: Path, limit_s: float, terminal: Terminal) -> Run:
    """One kernel for the whole; where no attempt at it was right, one for each part of it."""
    from orchestrator.records import Decision

    run = parts.ran(op, settings, workspaces, terminal)
    if run.best is not None or run.verdict is None or run.verdict.decision is not Decision.ESCALATE:
        return run
    terminal.say(f"{op.name}: no attempt at one kernel was right; a split into parts is asked for")
    return parts.in_parts(op, run, settings, workspaces, limit_s, terminal)


def _wanted(
    target: str,
    example: Path | None,
    trace: str | None,
    name: str | None,
    ops_dir: Path | None,
    replace: bool,
    like: tuple[Path, ...],
    probe_s: float,
    backward: str | None,
) -> Wanted:
    from orchestrator import catalogue
    from orchestrator.convert import Wanted, examples, extract, tracing
    from orchestrator.convert.backward import Way, way

    asked = extract.parse(target)
    if example is not None and trace is not None:
        raise UsageError("--example says what it is called with, --trace finds it out: give one of them")
    extract.cut(asked)  # a name that is not there is said before anything runs
    own = name or _free_name(asked)
    place = (ops_dir or catalogue.OWN) / own
    if not (replace and place.exists()):
        catalogue.place(own, ops_dir)
    wanted = Wanted(asked, examples.Examples(), place, like, probe_s, way(backward) if backward else None)
    if wanted.backward is Way.KERNEL and not (replace and wanted.backward_place.exists()):
        catalogue.place(wanted.backward_place.name, ops_dir)
    if example is not None:
        return dataclasses.replace(wanted, examples=examples.read(example))
    return wanted if trace is None else dataclasses.replace(wanted, examples=tracing.traced(trace, asked))


def _free_name(target: Any) -> str:
    """The code's own name, with its file's before it where an op of that name is shipped."""
    own: str = target.op
    return own if own not in options.catalogue(None).shipped_names() else f"{target.path.stem.lower()}_{own}"


def _converted(wanted: Wanted, settings: Settings, terminal: Terminal) -> list[Op]:
    """The op, made and checked, and the one of its gradients."""
    from orchestrator import verifying

    with verifying.judge_log() as log:
        return carry.through(parts.checked(wanted, settings, log, terminal), terminal)
