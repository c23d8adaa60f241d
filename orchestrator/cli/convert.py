"""`convert`: code that exists made into an op, and a kernel for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import carry, options, parts
from orchestrator.cli import run as runs
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.convert import Made, Wanted
    from orchestrator.convert.extract import Target
    from orchestrator.convert.under_way import Conversion
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest conversion of it, with these settings.")
    ] = False,
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
    from orchestrator.convert.under_way import Conversion

    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent, "model": model},
        "loop": {"rounds": rounds},
        **options.judge(device, quick, seed, require_sandbox),
        "measure": {"require_idle": require_idle or None},
    }
    settings, terminal = options.settings(config, override, given), carry.terminal(to_stderr=json or dry_run)
    if resume:
        begins = {"--example": example, "--trace": trace, "--like": like, "--backward": backward}
        stops = {"--only": only, "--dry-run": dry_run}
        conversion, ops = _taken_up(target, name, ops_dir, workspaces, {**begins, **stops})
        terminal.say(f"goes on with {conversion.id}")
    else:
        wanted = _wanted(target, example, trace, name, ops_dir, replace, tuple(like or ()), probe_s, backward)
        made = _converted(wanted, settings, terminal)
        if only or dry_run:
            (op, *_) = parts.required(made, terminal)
            raise typer.Exit(runs.first_prompt(op, settings) if dry_run and not only else 0)
        conversion = Conversion.begin(wanted.target, [one.op.name for one in made], workspaces)
        ops = parts.required(made, terminal)
    means = parts.Means(conversion, settings, workspaces, probe_s, replace, terminal)
    with conversion.held():
        raise typer.Exit(_kernels(ops, means, as_json=json))


def _taken_up(
    target: str, name: str | None, ops_dir: Path | None, workspaces: Path, others: Mapping[str, object]
) -> tuple[Conversion, list[Op]]:
    """The conversion that was begun last, and its ops as they are written. `others` are options of a new one."""
    from orchestrator import ops
    from orchestrator.convert.under_way import Conversion

    if given := [option for option, value in others.items() if value]:
        raise UsageError(f"--resume goes on with what was converted: leave {', '.join(given)} out, or --resume")
    asked, place = _placed(target, name, ops_dir)
    conversion = Conversion.newest(asked, place.name, workspaces)
    return conversion, [ops.load(one, place.parent) for one in conversion.ops]


def _kernels(ops: list[Op], means: parts.Means, *, as_json: bool) -> int:
    """A kernel for each op, in their order, while there is one; the exit code."""
    from orchestrator import records

    for op in ops:
        finished = carry.carried(partial(_run, op, means), means.terminal, means.interrupted)
        if as_json:
            typer.echo(records.to_json(finished))
        if finished.exit_code:
            if op is not ops[-1]:
                means.terminal.say(f"{ops[-1].name}: not run, since {op.name} has no kernel")
            break
    return finished.exit_code


def _run(op: Op, means: parts.Means) -> Run:
    """One kernel for the whole; where no attempt at it was right, one for each part of it."""
    from orchestrator.records import Decision

    run = parts.ran(op, means)
    if run.best is not None or run.verdict is None or run.verdict.decision is not Decision.ESCALATE:
        return run
    means.terminal.say(f"{op.name}: no attempt at one kernel was right; a split into parts is asked for")
    return parts.in_parts(op, run, means)


def _placed(target: str, name: str | None, ops_dir: Path | None) -> tuple[Target, Path]:
    """What is asked for, and its op's folder. A name that is not there is said before anything runs."""
    from orchestrator import catalogue
    from orchestrator.convert import extract

    asked = extract.parse(target)
    extract.cut(asked)
    return asked, (ops_dir or catalogue.OWN) / (name or _free_name(asked))


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
    from orchestrator.convert import Wanted, examples, tracing
    from orchestrator.convert.backward import Way, way

    if example is not None and trace is not None:
        raise UsageError("--example says what it is called with, --trace finds it out: give one of them")
    asked, place = _placed(target, name, ops_dir)
    if not (replace and place.exists()):
        catalogue.place(place.name, ops_dir)
    wanted = Wanted(asked, examples.Examples(), place, like, probe_s, way(backward) if backward else None)
    if wanted.backward is Way.KERNEL and not (replace and wanted.backward_place.exists()):
        catalogue.place(wanted.backward_place.name, ops_dir)
    if example is not None:
        return dataclasses.replace(wanted, examples=examples.read(example))
    return wanted if trace is None else dataclasses.replace(wanted, examples=tracing.traced(trace, asked))


def _free_name(target: Target) -> str:
    """The code's own name, with its file's before it where an op of that name is shipped."""
    own = target.op
    return own if own not in options.catalogue(None).shipped_names() else f"{target.path.stem.lower()}_{own}"


def _converted(wanted: Wanted, settings: Settings, terminal: Terminal) -> tuple[Made, ...]:
    """The op, made and checked, and the one of its gradients."""
    from orchestrator import verifying

    with verifying.judge_log() as log:
        return carry.through(parts.converted(wanted, settings, log, terminal), terminal)
