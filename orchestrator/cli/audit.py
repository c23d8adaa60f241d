"""`audit`: known faults of existing kernels, and what compiling, judging, measuring and a model's review bring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.agents import Agent
    from orchestrator.audit.findings import Audit
    from orchestrator.audit.running import Evidence
    from orchestrator.config import Settings
    from orchestrator.executors import Executor
    from orchestrator.ops import Op
    from orchestrator.terminal import Terminal
    from orchestrator.verifying import KernelFile


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("audit")(audit_files)


def audit_files(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A kernel file, or a tree of them.")],
    op: Annotated[
        str | None, typer.Option(metavar="NAME", help="Also judge the file as a kernel of this op, and compile it.")
    ] = None,
    model: Annotated[
        bool, typer.Option("--model", help="Also have a model review it; with --op its claims are tested.")
    ] = False,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --model, who reviews: as for a run. [default: auto]")
    ] = None,
    model_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --model, the model to ask. [default: the agent's own]")
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="With --op, on a GPU: also measure it.")] = False,
    sanitize: Annotated[
        bool,
        typer.Option("--sanitize", help="With --op, on a GPU: run it under compute-sanitizer, without confinement."),
    ] = False,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    workspaces: options.Workspaces = options.WORKSPACES,
    config: options.Config = None,
    override: options.Override = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings here as SARIF 2.1.0.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look through kernel files for known faults.

    Exit code 1 when a finding is of severity high (or, with --op, the file does not pass), else 0.
    `# audit: ignore RULE reason` on a line silences a rule there.
    """
    from orchestrator import library, verifying
    from orchestrator.audit import engine, report
    from orchestrator.audit.running import NOTHING_RUN
    from orchestrator.audit.sarif import to_sarif

    if path.is_dir() and (op is not None or model):
        raise UsageError(f"--{'model' if model else 'op'} is for one file, {path} is a folder; give the file")
    if op is None and (measure or sanitize):
        raise UsageError(f"--{'measure' if measure else 'sanitize'} runs the file as a kernel of an op; give --op NAME")
    if not model and (agent is not None or model_name is not None):
        raise UsageError("--agent and --model-name say who reviews the file; give --model too")
    settings = options.settings(
        config, override, {"agent": {"name": agent, "model": model_name}, **options.judge(device)}
    )
    if sarif is not None:
        engine.check_writable(sarif)
    if measure or sanitize:
        library.require_gpu(settings)
    result, evidence = engine.audit(path), NOTHING_RUN
    if op is not None or model:
        (file,) = verifying.read([str(path)])
        asked = _Asked(file, None if op is None else options.op(op, ops_dir), settings, model, measure, sanitize)
        evidence = _gathered(asked, result, workspaces)
        result = engine.with_more(result, evidence.findings(file), file.data)
    text = (
        report.to_json(result, evidence) if json else report.to_markdown(result, tree=path.is_dir(), evidence=evidence)
    )
    typer.echo(text)
    if sarif is not None:
        engine.write(sarif, to_sarif(result))
    raise typer.Exit(report.exit_code(result, evidence))


@dataclass(frozen=True)
class _Asked:
    """What is wanted beside the source's findings."""

    file: KernelFile
    op: Op | None
    settings: Settings
    model: bool
    measure: bool
    sanitize: bool


def _gathered(asked: _Asked, result: Audit, workspaces: Path) -> Evidence:
    from orchestrator import verifying
    from orchestrator.audit.running import Evidence
    from orchestrator.audit.sanitizer import sanitize

    terminal = carry.terminal(to_stderr=True)
    agent = _agent(asked, terminal) if asked.model else None

    async def work(folder: Path, log: Path) -> Evidence:
        async with carry.judge(asked.settings, log) as executor:
            found = await _run(asked, executor, terminal, folder) if asked.op is not None else Evidence()
            return found if agent is None else await _reviewed(asked, found, result, agent, executor, workspaces)

    with verifying.judge_log() as log, verifying.kept_or_temporary(None) as folder:
        found = carry.through(work(folder, log), terminal)
    if asked.sanitize and asked.op is not None:
        return replace(found, sanitized=sanitize(asked.file.data, asked.file.name, asked.op))
    return found


def _agent(asked: _Asked, terminal: Terminal) -> Agent:
    """Who reviews. Recorded reviews lie beside the file, in recorded/<its name>/."""
    from orchestrator.agents.choose import choose
    from orchestrator.asking import Asking, Purse

    beside, settings = Path(asked.file.name), asked.settings
    agent, why = choose(
        settings.agent.name,
        op_recorded=beside.parent / "recorded" / beside.stem,
        single_op=True,
        options=settings.agent.options(require_sandbox=settings.judge.require_sandbox),
        announce=terminal.say,
    )
    terminal.say(why)
    return Asking(agent, (Purse("op", settings.budget.op),))


async def _run(asked: _Asked, executor: Executor, terminal: Terminal, folder: Path) -> Evidence:
    """Judged, and with --measure timed where it passes, as `bench` does."""
    from orchestrator import bench, verifying
    from orchestrator.audit.running import Evidence
    from orchestrator.verifying import Verified

    assert asked.op is not None
    bound, file, settings = asked.op.spec.precision, asked.file, asked.settings
    if asked.measure:
        found = await bench.bench(file, asked.op, executor, settings, terminal, folder)
        return Evidence(Verified(found.file, found.sha256, found.report), bound, found.measured)
    (judged,) = await verifying.verify((file,), asked.op, executor, settings.judge, terminal)
    return Evidence(judged, bound)


async def _reviewed(
    asked: _Asked, found: Evidence, result: Audit, agent: Agent, executor: Executor, workspaces: Path
) -> Evidence:
    from orchestrator.audit.review import review
    from orchestrator.recorder import new_id

    stem = Path(asked.file.name).stem
    folder = workspaces / "audits" / new_id(stem)
    compiled = found.judged.report.compiled if found.judged is not None else ()
    answer = await review(
        *(asked.file.data, result.findings, asked.op, result.triton, agent, folder),
        judge=(executor, asked.settings.judge) if asked.op is not None else None,
        compiled=compiled,
    )
    return replace(found, reviewed=answer)
