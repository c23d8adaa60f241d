"""An op that no round made one kernel of, in parts: a split asked for, each part an op and a run, then the whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestrator.cli import carry

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.convert import Wanted
    from orchestrator.convert.split import Split
    from orchestrator.ops import Op
    from orchestrator.records import Run
    from orchestrator.terminal import Terminal

FOLDER = "splits"  # in the workspaces


def in_parts(op: Op, failed: Run, settings: Settings, workspaces: Path, limit_s: float, terminal: Terminal) -> Run:
    """The run of the whole that begins from its parts' kernels, put together.

    Raises:
        UsageError: no split came, or a part makes no op.
        typer.Exit: a part's checker lets decoys through, or no kernel of it was right.
    """
    from orchestrator.convert import split

    made = carry.through(_split(op, failed, settings, workspaces, limit_s, terminal), terminal)
    file = op.folder.absolute() / split.FILE
    file.write_text(made.text, encoding="utf-8")
    kernels = {part: _kernel(op, file, part, made, settings, workspaces, terminal) for part in made.parts}
    together = op.folder / "composed.py"
    together.write_text(split.composed(op, made, kernels), encoding="utf-8")
    terminal.say(f"{op.name}: the parts' kernels together are {together}; they are judged as the whole")
    begun = settings.model_copy(update={"loop": settings.loop.model_copy(update={"given": str(together)})})
    return ran(op, begun, workspaces, terminal)


def ran(op: Op, settings: Settings, workspaces: Path, terminal: Terminal) -> Run:
    """An ordinary run of the op."""
    from orchestrator import library

    return library.run_op(op, workspaces=workspaces, settings=settings, watch=terminal, say=terminal.say)


async def _split(
    op: Op, failed: Run, settings: Settings, workspaces: Path, limit_s: float, terminal: Terminal
) -> Split:
    from orchestrator import prompts
    from orchestrator.agents.choose import choose
    from orchestrator.asking import Asking, Purse
    from orchestrator.convert import split
    from orchestrator.convert.prober import probing

    report = prompts.render_report(failed.attempts[-1].report) if failed.attempts else "Nothing was judged."
    agent, why = choose(
        settings.agent.name,
        op_recorded=op.recorded,
        single_op=True,
        options=settings.agent.options(require_sandbox=settings.judge.require_sandbox),
        announce=terminal.say,
    )
    terminal.say(why)
    asking = Asking(agent, (Purse("op", settings.budget.op),))
    async with probing(limit_s) as probe:
        record = workspaces / FOLDER / failed.id
        return await split.proposed(op, report, asking, probe, settings.loop.rounds, record, terminal.say)


def _kernel(
    op: Op, file: Path, part: str, made: Split, settings: Settings, workspaces: Path, terminal: Terminal
) -> tuple[str, str]:
    """The name of the part's entry and its kernel's file, from a run of its own."""
    from orchestrator.convert import Wanted
    from orchestrator.convert.examples import Examples, distinct, larger_first
    from orchestrator.convert.extract import Target
    from orchestrator.workspace import Workspace

    seen = made.parts[part]
    calls = distinct(larger_first(seen.calls), 4)
    examples = Examples(calls, None, seen.inner, seen.passed_on)
    wanted = Wanted(Target(file, part), examples, op.folder.parent / f"{op.name}_{part}")
    terminal.say(f"{op.name}: the part {part}")
    (own,) = carry.through(checked(wanted, settings, workspaces / "judge.log", terminal), terminal)
    run = ran(own, settings, workspaces, terminal)
    if run.best is None:
        terminal.say(f"{op.name}: no kernel of the part {part} was right; the whole ends here")
        raise typer.Exit(run.exit_code)
    commit = run.attempts[run.best - 1].commit
    kernel = Workspace.open(workspaces, own.name).read_at(own.spec.kernel_name, str(commit))
    assert kernel is not None
    return own.spec.function, kernel.decode()


async def checked(wanted: Wanted, settings: Settings, log: Path, terminal: Terminal) -> list[Op]:
    """The op, made and its checker tried; after it the op of its gradients, if one is wanted.

    Raises:
        typer.Exit: a checker lets decoys through; what to do about it has been said.
    """
    from orchestrator import opcheck
    from orchestrator.convert import convert

    async with carry.judge(settings, log) as executor:
        made = await convert(wanted, terminal.say, lambda op: opcheck.check(op, executor, quick=settings.judge.quick))
    for one in (one for one in made if not one.check.passed):
        terminal.say("\n".join(opcheck.lines(one.check)))
        terminal.say(
            f"edit {one.op.folder / 'op.yaml'} as it says, then ask `ops check {one.op.name}` again; no model was asked"
        )
    if not all(one.check.passed for one in made):
        raise typer.Exit(1)
    return [one.op for one in made]
