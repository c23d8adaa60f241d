"""`measure` and `adopt`: a run that is taken up again, by a GPU or by a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.cli.bench import require_gpu
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.records import Run


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("measure")(measure_run)
    app.command("adopt")(adopt_run)


def measure_run(
    run: options.RunId,
    workspaces: options.Workspaces = options.WORKSPACES,
    require_idle: options.RequireIdle = False,
    require_sandbox: options.RequireSandbox = False,
    config: options.Config = None,
    override: options.Override = None,
    json: options.Json = False,
) -> None:
    """Finish a run that was UNMEASURED.

    Its best kernel is judged again here, measured and decided. Needs a GPU; the workspaces may have been copied from
    another machine.
    """
    from orchestrator import finish, records

    settings = options.settings(config, override, options.strictness(require_idle, require_sandbox))
    require_gpu(settings)
    ended = finish.find(run, workspaces, options.op)
    terminal = carry.terminal(to_stderr=json)

    async def work() -> Run:
        async with carry.judge(settings, workspaces / "judge.log") as executor:
            with carry.entered(workspaces, terminal, settings) as watch:
                return await finish.measure(ended, executor, settings, watch)

    finished = carry.through(work(), terminal, f"interrupted; the record so far is in {ended.folder}")
    if json:
        typer.echo(records.to_json(finished))
    raise typer.Exit(finished.exit_code)


def adopt_run(
    run: options.RunId,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it goes into DECISION.md.")] = None,
    workspaces: options.Workspaces = options.WORKSPACES,
) -> None:
    """Merge the best kernel of a run, as a person's decision."""
    from orchestrator import finish

    if reason is None:
        raise UsageError("say why this kernel is adopted: --reason TEXT; it goes into DECISION.md")
    ended = finish.find(run, workspaces, options.op)
    with carry.entered(workspaces, carry.terminal(to_stderr=False)) as watch:
        raise typer.Exit(finish.adopt(ended, reason, watch).exit_code)
