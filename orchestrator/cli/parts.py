"""An op that no round made one kernel of, in parts: a split asked for, each part an op and a run, then the whole.

Each step finds what is kept of it in the conversion's record, so that one that was killed is gone on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestrator.cli import carry
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.convert import Made, Wanted
    from orchestrator.convert.split import Split
    from orchestrator.convert.under_way import Conversion
    from orchestrator.ops import Op
    from orchestrator.records import Run
    from orchestrator.terminal import Terminal

FOLDER = "splits"  # in the workspaces


@dataclass(frozen=True)
class Means:
    """What a conversion works with once its op is there."""

    conversion: Conversion
    settings: Settings
    workspaces: Path
    limit_s: float  # of running the person's code once
    replace: bool  # whether folders of parts that are there already may be
    terminal: Terminal

    @property
    def interrupted(self) -> str:
        """What is said on Ctrl-C."""
        return f"interrupted; --resume goes on with {self.conversion.id}"


def in_parts(op: Op, failed: Run, means: Means) -> Run:
    """The run of the whole that begins from its parts' kernels, put together.

    Raises:
        UsageError: a part makes no op, or there is an op of a part's name.
        typer.Exit: no split came, a part's checker lets decoys through, or no kernel of it was right.
    """
    from orchestrator.convert import split
    from orchestrator.tree import write_whole

    made = carry.through(_split(op, failed, means), means.terminal, means.interrupted)
    if isinstance(made, str):
        means.terminal.say(f"{made}; --resume with more --rounds asks on")
        raise typer.Exit(failed.exit_code)
    file = op.folder.absolute() / split.FILE
    write_whole(file, made.text)
    kernels = {part: _kernel(op, file, part, made, means) for part in made.parts}
    together = op.folder / "composed.py"
    write_whole(together, split.composed(op, made, kernels))
    means.terminal.say(f"{op.name}: the parts' kernels together are {together}; they are judged as the whole")
    loop = means.settings.loop.model_copy(update={"given": str(together)})
    return ran(op, means, f"{op.name} composed", means.settings.model_copy(update={"loop": loop}))


def ran(op: Op, means: Means, step: str = "", settings: Settings | None = None) -> Run:
    """The op's run in that step, by default the one that it is converted for: begun, gone on with, or read."""
    from orchestrator import library

    return library.run_op(
        op,
        workspaces=means.workspaces,
        settings=settings or means.settings,
        watch=means.terminal,
        say=means.terminal.say,
        run_id=means.conversion.run_of(step or op.name, op.name),
    )


async def _split(op: Op, failed: Run, means: Means) -> Split | str:
    from orchestrator import prompts
    from orchestrator.agents.choose import choose
    from orchestrator.asking import Asking, Purse
    from orchestrator.convert import split
    from orchestrator.convert.prober import probing

    settings, say = means.settings, means.terminal.say
    report = prompts.render_report(failed.attempts[-1].report) if failed.attempts else "Nothing was judged."
    agent, why = choose(
        settings.agent.name,
        op_recorded=op.recorded,
        single_op=True,
        options=settings.agent.options(require_sandbox=settings.judge.require_sandbox),
        announce=say,
    )
    say(why)
    asking = Asking(agent, (Purse("op", settings.budget.op),))
    async with probing(means.limit_s) as probe:
        record = means.workspaces / FOLDER / failed.id
        return await split.proposed(op, report, asking, probe, settings.loop.rounds, record, say)


def _kernel(whole: Op, file: Path, part: str, made: Split, means: Means) -> tuple[str, str]:
    """The name of the part's entry and its kernel's file, from a run of its own."""
    from orchestrator.workspace import Workspace

    means.terminal.say(f"{whole.name}: the part {part}")
    own = _part(whole, file, part, made, means)
    run = ran(own, means, _step(whole, part))
    if run.best is None:
        means.terminal.say(f"{whole.name}: no kernel of the part {part} was right; the whole ends here")
        raise typer.Exit(run.exit_code)
    commit = run.attempts[run.best - 1].commit
    kernel = Workspace.open(means.workspaces, own.name).read_at(own.spec.kernel_name, str(commit))
    assert kernel is not None
    return own.spec.function, kernel.decode()


def _part(whole: Op, file: Path, part: str, made: Split, means: Means) -> Op:
    """The part's op: as this conversion made it before, or made now."""
    from orchestrator import ops
    from orchestrator.convert import Wanted
    from orchestrator.convert.examples import Examples, distinct, larger_first
    from orchestrator.convert.extract import Target

    place = whole.folder.parent / f"{whole.name}_{part}"
    if means.conversion.has(_step(whole, part)):
        return ops.load(place.name, place.parent)
    if place.exists() and (not means.replace or place.name in means.conversion.ops):
        raise UsageError(
            f"{place} is there already, and a part is to be called so: move it, or give --replace, and --resume"
        )
    seen = made.parts[part]
    examples = Examples(distinct(larger_first(seen.calls), 4), None, seen.inner, seen.passed_on)
    wanted = Wanted(Target(file, part), examples, place)
    made_of_it = converted(wanted, means.settings, means.workspaces / "judge.log", means.terminal)
    (own,) = carry.through(made_of_it, means.terminal, means.interrupted)
    means.conversion.run_of(_step(whole, part), place.name)
    return required([own], means.terminal)[0]


def _step(whole: Op, part: str) -> str:
    """The part's run in the conversion's record."""
    return f"{whole.name}/{part}"


async def converted(wanted: Wanted, settings: Settings, log: Path, terminal: Terminal) -> tuple[Made, ...]:
    """The op, made and its checker tried; after it the op of its gradients, if one is wanted."""
    from orchestrator import opcheck
    from orchestrator.convert import convert

    async with carry.judge(settings, log) as executor:
        return await convert(wanted, terminal.say, lambda op: opcheck.check(op, executor, quick=settings.judge.quick))


def required(made: Sequence[Made], terminal: Terminal) -> list[Op]:
    """The ops, whose checkers must be good enough.

    Raises:
        typer.Exit: one lets decoys through; what to do about it has been said.
    """
    from orchestrator import opcheck

    for one in (one for one in made if not one.check.passed):
        terminal.say("\n".join(opcheck.lines(one.check)))
        terminal.say(
            f"edit {one.op.folder / 'op.yaml'} as it says, then ask `ops check {one.op.name}` again; no model was asked"
        )
    if not all(one.check.passed for one in made):
        raise typer.Exit(1)
    return [one.op for one in made]
