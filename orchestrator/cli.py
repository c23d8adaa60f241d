"""The command line: parse, load, call, show, exit code. Everything heavy is imported where it is used.

Exit codes: 0 accepted (or, where nothing can be measured, correct), 1 not accepted, 2 usage or configuration, 3 our
machinery, 130 interrupted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator import __version__
from orchestrator.errors import OrchestratorError, UsageError

if TYPE_CHECKING:
    from orchestrator.batch import Agents, Work
    from orchestrator.bench import Benched
    from orchestrator.config import Settings
    from orchestrator.finish import Ended
    from orchestrator.ops import Op
    from orchestrator.outcome import Outcome
    from orchestrator.plan import Plan
    from orchestrator.progress import Progress
    from orchestrator.records import OpCheck, Run
    from orchestrator.redteam.entries import Entry
    from orchestrator.redteam.score import Score
    from orchestrator.terminal import Terminal
    from orchestrator.verify import KernelFile, Verified
    from orchestrator.watch import Watch

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    subcommand_metavar="COMMAND [ARGS]...",  # the default differs between versions
    context_settings={"help_option_names": ["-h", "--help"]},
)


_Device = Annotated[
    str | None,
    typer.Option(metavar="WHERE", help="Where to judge: auto, gpu or cpu (Triton's interpreter). [default: auto]"),
]
_Quick = Annotated[
    bool | None,
    typer.Option("--quick/--full", help="The quick subset, or all cases. [default: quick without a GPU]"),
]
_Seed = Annotated[int | None, typer.Option(metavar="N", help="Repeat a verdict's values. [default: fresh]")]
_RequireSandbox = Annotated[
    bool, typer.Option("--require-sandbox", help="Refuse to run where a piece of the confinement is missing.")
]
_RequireIdle = Annotated[
    bool, typer.Option("--require-idle", help="Refuse to measure where another process uses the GPU.")
]
_Workspaces = Annotated[
    Path,
    typer.Option(metavar="DIR", show_default=False, help="Where repositories and runs are kept. [default: workspaces]"),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the run's record as JSON; progress goes to stderr.")]
_Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file of settings over the defaults.")]
_Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who writes it: auto, anthropic, openai, inbox or recorded. [default: auto]"),
]
_Override = Annotated[
    list[str] | None, typer.Option("-c", metavar="KEY=VALUE", help="One setting, such as loop.rounds=2.")
]


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    op: Annotated[
        str | None, typer.Option(metavar="NAME", help="The op to write a kernel for; `ops` lists them.")
    ] = None,
    ops: Annotated[
        str | None, typer.Option(metavar="NAMES", help="A batch: ops by commas, or all. Unattended, to the end.")
    ] = None,
    ops_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A batch: a YAML list of ops, each with settings of its own.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest batch, with these settings.")] = False,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a batch: as many ops at once. [default: 8]")
    ] = None,
    judges: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a batch: as many judges. [default: one a GPU]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Of a batch: print the table at the end only.")] = False,
    agent: _Agent = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model to ask. [default: the agent's own]")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Proposals before it is given up. [default: 3]")
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="In this order, by commas. [default: correct,optimize,tune]"),
    ] = None,
    persist: Annotated[bool, typer.Option("--persist", help="Go on with the stages left, also at parity.")] = False,
    device: _Device = None,
    quick: _Quick = None,
    seed: _Seed = None,
    require_sandbox: _RequireSandbox = False,
    require_idle: _RequireIdle = False,
    workspaces: _Workspaces = Path("workspaces"),
    config: _Config = None,
    override: _Override = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the first prompt and stop.")] = False,
    json: _Json = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """A language model writes a Triton kernel; a judge decides whether it may stay.

    python -m orchestrator --op rmsnorm
    """
    if context.invoked_subcommand is not None:
        return
    if version:
        typer.echo(f"orchestrator {__version__}")
        return
    batch = ops is not None or ops_file is not None or resume
    if op is None and not batch:
        raise UsageError(
            "nothing to do: give --op NAME, or --ops NAMES for a batch; `python -m orchestrator ops` lists the ops"
        )
    if (op is not None) + (ops is not None) + (ops_file is not None) > 1 or (op is not None and resume):
        raise UsageError("--op is one run, --ops or --ops-file a batch, --resume goes on with one: give one of them")
    if batch and dry_run:
        raise UsageError("--dry-run prints the first prompt of one op: give --op NAME")
    if not batch and (concurrency is not None or judges is not None or quiet):
        raise UsageError("--concurrency, --judges and --quiet are of a batch: give --ops NAMES")
    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent, "model": model},
        "loop": {
            "rounds": rounds,
            "stages": stages.split(",") if stages is not None else None,
            "persist": persist or None,
        },
        "judge": {"device": device, "quick": quick, "seed": seed, "require_sandbox": require_sandbox or None},
        "measure": {"require_idle": require_idle or None},
    }
    if op is not None:
        raise typer.Exit(_run(op, _settings(config, override, given), workspaces, dry_run=dry_run, as_json=json))
    chosen = _Batch(ops, ops_file, resume, concurrency or 8, judges, quiet, json)
    raise typer.Exit(_batch(chosen, lambda own: _settings(config, override, given, own), workspaces))


@app.command("verify")
def verify_files(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Kernel files, of any name; - is standard input.")
    ],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="The op they are kernels of.")] = None,
    device: _Device = None,
    quick: _Quick = None,
    seed: _Seed = None,
    require_sandbox: _RequireSandbox = False,
    repro: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a script here for each failure: its smallest case alone.")
    ] = None,
    config: _Config = None,
    override: _Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON; progress goes to stderr.")] = False,
) -> None:
    """Judge kernel files, without a model.

    Exit code 0 when all of them pass, 1 when one does not.
    """
    if op is None:
        raise UsageError("nothing to judge them by: give --op NAME; `python -m orchestrator ops` lists the ops")
    given: dict[str, dict[str, Any]] = {
        "judge": {"device": device, "quick": quick, "seed": seed, "require_sandbox": require_sandbox or None}
    }
    raise typer.Exit(_verify(files, op, _settings(config, override, given), repro, as_json=json))


@app.command("redteam")
def redteam_judge(
    only: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only files or kinds of this name, such as '*cache*'.")
    ] = None,
    sample: Annotated[int | None, typer.Option(metavar="N", help="Only N of them, evenly spread.")] = None,
    layer: Annotated[
        str, typer.Option(metavar="WHICH", help="Judge by the whole, by the runtime layer alone, or both.")
    ] = "both",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="As many judges at once.")] = 1,
    device: _Device = None,
    quick: _Quick = None,
    seed: _Seed = None,
    require_sandbox: _RequireSandbox = False,
    config: _Config = None,
    override: _Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON; progress goes to stderr.")] = False,
) -> None:
    """Put the judge to the test with the corpora.

    These are kernels that cheat or are wrong, and honest ones in many styles.

    Exit code 0 when every cheat that can be seen here is caught and every honest kernel accepted, 1 when not.
    """
    given: dict[str, dict[str, Any]] = {
        "judge": {"device": device, "quick": quick, "seed": seed, "require_sandbox": require_sandbox or None}
    }
    raise typer.Exit(_redteam(_settings(config, override, given), only, sample, layer, jobs, as_json=json))


@app.command("bench")
def bench_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A kernel file, of any name; - is standard input.")],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="The op it is a kernel of.")] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only with this dtype, no curve; may be repeated. [default: all]"),
    ] = None,
    require_idle: _RequireIdle = False,
    require_sandbox: _RequireSandbox = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the evidence here: measured.json, inductor/.")
    ] = None,
    config: _Config = None,
    override: _Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Judge a kernel file and measure it beside the op's baselines.

    Needs a GPU. Exit code 0 when it was measured, 1 when it is not correct.
    """
    if op is None:
        raise UsageError("nothing to measure it by: give --op NAME; `python -m orchestrator ops` lists the ops")
    settings = _settings(config, override, _strictness(require_idle, require_sandbox))
    _require_gpu(settings)
    raise typer.Exit(_bench(file, op, settings, out, tuple(dtype or ()), as_json=json))


@app.command("measure")
def measure_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as its folder is called.")],
    workspaces: _Workspaces = Path("workspaces"),
    require_idle: _RequireIdle = False,
    require_sandbox: _RequireSandbox = False,
    config: _Config = None,
    override: _Override = None,
    json: _Json = False,
) -> None:
    """Finish a run that was UNMEASURED.

    Its best kernel is judged again here, measured and decided. Needs a GPU; the workspaces may have been copied from
    another machine.
    """
    settings = _settings(config, override, _strictness(require_idle, require_sandbox))
    _require_gpu(settings)
    raise typer.Exit(_measure(run, settings, workspaces, as_json=json))


@app.command("adopt")
def adopt_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as its folder is called.")],
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it goes into DECISION.md.")] = None,
    workspaces: _Workspaces = Path("workspaces"),
) -> None:
    """Merge the best kernel of a run, as a person's decision."""
    if reason is None:
        raise UsageError("say why this kernel is adopted: --reason TEXT; it goes into DECISION.md")
    raise typer.Exit(_adopt(run, reason, workspaces))


@app.command("audit")
def audit_files(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A kernel file, or a tree of them.")],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Also judge the file as a kernel of this op.")] = None,
    device: _Device = None,
    config: _Config = None,
    override: _Override = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings here as SARIF 2.1.0.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look through kernel files for known faults, by their source.

    Exit code 1 when a finding is of severity high (or, with --op, the file does not pass), else 0.
    `# audit: ignore RULE reason` on a line silences a rule there.
    """
    if op is not None and path.is_dir():
        raise UsageError(f"--op judges one file, {path} is a folder; give the file")
    settings = _settings(config, override, {"judge": {"device": device}})
    raise typer.Exit(_audit(path, op, settings, sarif, as_json=json))


ledger_app = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger", help="The index over all runs; `ledger rebuild` makes it again.")


@ledger_app.command("rebuild")
def rebuild_ledger(workspaces: _Workspaces = Path("workspaces")) -> None:
    """Make the ledger again from git and the run folders, which are the truth.

    Exit code 0 when every run could be read, 1 when one could not.
    """
    from orchestrator import ledger

    made = ledger.rebuild(workspaces)
    typer.echo(f"{workspaces / ledger.NAME}: {made.runs} runs")
    for line in made.unreadable:
        typer.echo(f"left out: {line}", err=True)
    raise typer.Exit(int(bool(made.unreadable)))


ops_app = typer.Typer(rich_markup_mode=None, subcommand_metavar="COMMAND [ARGS]...")
app.add_typer(ops_app, name="ops")


@ops_app.callback(invoke_without_command=True)
def list_ops(context: typer.Context) -> None:
    """List the ops there are; `ops show` prints one as a model sees it, `ops check` checks their checkers."""
    from orchestrator import ops

    if context.invoked_subcommand is None:
        for name in ops.names(_ops_root()):
            typer.echo(f"{name:<24} {ops.load(name, _ops_root()).spec.title}")


@ops_app.command("show")
def show_op(name: Annotated[str, typer.Argument(metavar="NAME", help="The op.")]) -> None:
    """Print an op's specification as a model sees it."""
    from orchestrator import ops

    typer.echo(ops.load(name, _ops_root()).workspace_files()["SPEC.md"].decode().rstrip())


@ops_app.command("check")
def check_ops(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]", help="Ops. [default: all]")] = None,
    device: _Device = None,
    quick: _Quick = None,
    config: _Config = None,
    override: _Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Try each op's checker on decoys: wrong kernels made from its reference, all of which must be rejected.

    Exit code 0 when they are, 1 when one is let through.
    """
    settings = _settings(config, override, {"judge": {"device": device, "quick": quick}})
    raise typer.Exit(_check_ops(names or [], settings, as_json=json))


@app.command("doctor")
def examine_machine(
    agent: _Agent = None,
    device: _Device = None,
    require_sandbox: _RequireSandbox = False,
    workspaces: _Workspaces = Path("workspaces"),
    config: _Config = None,
    override: _Override = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check whether a run could work here, and say what to do.

    Exit code 0 when it could, 1 when something lacks that it cannot do without.
    """
    from orchestrator import doctor
    from orchestrator.agents.choose import check_name

    given: dict[str, dict[str, Any]] = {
        "agent": {"name": agent},
        "judge": {"device": device, "require_sandbox": require_sandbox or None},
    }
    settings = _settings(config, override, given)
    check_name(settings.agent.name)
    conditions = doctor.examine(doctor.Asked(settings, workspaces))
    typer.echo(doctor.to_json(conditions) if json else doctor.to_text(conditions))
    raise typer.Exit(doctor.exit_code(conditions))


def main() -> None:
    """The entry point: an error of ours is one line and its exit code; only a bug shows a traceback."""
    try:
        app()
    except OrchestratorError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def _ops_root() -> Path:
    from orchestrator import resources

    return resources.shipped("configs") / "ops"


def _settings(
    config: Path | None,
    override: list[str] | None,
    given: dict[str, dict[str, Any]],
    own: dict[str, Any] | None = None,
) -> Settings:
    """The settings of a command; `own` are those of one op of a batch, which outrank the rest."""
    from orchestrator import config as configuration

    flags = {
        section: {key: value for key, value in values.items() if value is not None} for section, values in given.items()
    }
    return configuration.load(config, tuple(override or ()), configuration.merged([flags, own or {}]))


def _run(name: str, settings: Settings, workspaces: Path, *, dry_run: bool, as_json: bool) -> int:
    from rich.console import Console

    from orchestrator import ops, records
    from orchestrator.terminal import Terminal

    op = ops.load(name, _ops_root())
    terminal = Terminal(Console(stderr=as_json))
    try:
        if dry_run:
            return asyncio.run(_dry_run(op, settings))
        finished = asyncio.run(_loop(op, settings, workspaces, terminal))
    except KeyboardInterrupt:
        terminal.close()
        typer.echo(f"interrupted; the record so far is in {workspaces / 'runs'}", err=True)
        return 130
    finally:
        terminal.close()
    if as_json:
        typer.echo(records.to_json(finished))
    return finished.exit_code


async def _loop(op: Op, settings: Settings, workspaces: Path, terminal: Terminal) -> Run:
    from orchestrator import opcheck
    from orchestrator.agents.choose import choose
    from orchestrator.asking import Asking, Purse
    from orchestrator.executors.local import LocalExecutor
    from orchestrator.loop import run_op

    agent, why = choose(
        settings.agent.name,
        op_recorded=op.recorded,
        single_op=True,
        options=settings.agent.options(),
        announce=terminal.say,
    )
    terminal.say(why)
    executor = LocalExecutor(settings.judge.device, workspaces / "judge.log")
    try:
        terminal.say(await opcheck.require(op, executor, settings.judge))
        asking = Asking(agent, (Purse("op", settings.budget.op),))
        with _entered(workspaces, terminal) as watch:
            return await run_op(op, asking, executor, settings, workspaces, watch)
    finally:
        await executor.close()


@contextmanager
def _entered(workspaces: Path, watch: Watch) -> Iterator[Watch]:
    """The watcher, and beside it the one that enters the run into the ledger."""
    from orchestrator.ledger import Entering, Ledger
    from orchestrator.watch import Several

    index = Ledger(workspaces)
    try:
        yield Several(Entering(index), watch)
    finally:
        index.close()


@dataclass(frozen=True)
class _Batch:
    """What the command line says of a batch."""

    ops: str | None
    file: Path | None
    resume: bool
    concurrency: int
    judges: int | None
    quiet: bool
    as_json: bool


def _batch(asked: _Batch, settings: Callable[[dict[str, Any]], Settings], workspaces: Path) -> int:
    from rich.console import Console

    from orchestrator import batch, ops, outcome, plan, records
    from orchestrator.progress import Progress

    settings({})  # what is wrong for all ops is said before the ops are looked at
    todo = _plan(asked, workspaces)
    work = [batch.Work(one, ops.load(one.op, _ops_root()), settings(one.wanted.settings)) for one in todo.ops]
    progress = Progress(Console(stderr=asked.as_json), quiet=asked.quiet)
    agents = batch.Agents(progress.say)
    batch.check(work, agents, workspaces)
    try:
        outcomes = asyncio.run(_batch_on(asked, todo, work, agents, workspaces, progress))
    except KeyboardInterrupt:
        progress.close()
        typer.echo(f"interrupted; --resume goes on with {todo.id}", err=True)
        return 130
    finally:
        progress.close()
    progress.table(outcomes)
    if asked.as_json:
        typer.echo(records.to_json(outcomes))
    progress.say(f"log: {todo.folder(workspaces) / plan.LOG}")
    return outcome.exit_code(outcomes)


def _plan(asked: _Batch, workspaces: Path) -> Plan:
    """The batch that is asked for; one that goes on must be of the ops that are named, if any are."""
    from orchestrator import ops, plan

    known, wanted = ops.names(_ops_root()), None
    if asked.ops is not None:
        wanted = plan.named(asked.ops, known)
    elif asked.file is not None:
        wanted = plan.read(asked.file, known)
    if not asked.resume:
        assert wanted is not None
        return plan.new(wanted)
    newest = plan.newest(workspaces)
    if wanted is not None and wanted != tuple(one.wanted for one in newest.ops):
        names = ", ".join(one.op for one in newest.ops)
        raise UsageError(f"--resume goes on with {newest.id}, which is of {names}: leave the ops out, or --resume")
    return newest


async def _batch_on(
    asked: _Batch, todo: Plan, work: list[Work], agents: Agents, workspaces: Path, progress: Progress
) -> tuple[Outcome, ...]:
    from orchestrator import plan
    from orchestrator.batch import Batch
    from orchestrator.executors import pool
    from orchestrator.journal import Journal
    from orchestrator.ledger import Ledger

    index = Ledger(workspaces)
    judges = pool.local(asked.judges, work[0].settings.judge.device, workspaces)
    try:
        if not asked.resume:
            plan.keep(todo, workspaces)
        with plan.held(todo, workspaces):
            journal = Journal(todo.folder(workspaces) / plan.LOG, todo.id)
            batch = Batch(todo, work, agents, judges, workspaces, index, progress, journal)
            return await batch.run(asked.concurrency)
    finally:
        await judges.close()
        index.close()


def _verify(names: list[str], op_name: str, settings: Settings, scripts: Path | None, *, as_json: bool) -> int:
    from rich.console import Console

    from orchestrator import ops, verify
    from orchestrator.terminal import Terminal

    op, files = ops.load(op_name, _ops_root()), verify.read(names)
    folder = None if scripts is None else verify.scripts_folder(scripts)
    terminal = Terminal(Console(stderr=as_json))
    try:
        with verify.judge_log() as log:
            results = asyncio.run(_verify_on(files, op, settings, terminal, folder, log))
    except KeyboardInterrupt:
        terminal.close()
        typer.echo("interrupted", err=True)
        return 130
    finally:
        terminal.close()
    if as_json:
        typer.echo(verify.to_json(results))
    terminal.say(verify.summary(results, folder))
    return verify.exit_code(results)


def _audit(path: Path, op_name: str | None, settings: Settings, sarif: Path | None, *, as_json: bool) -> int:
    from orchestrator.audit import engine, report
    from orchestrator.audit.sarif import to_sarif

    result, judged = engine.audit(path), None
    if op_name is not None:
        judged = _audit_judged(path, op_name, settings)
    if sarif is not None:
        engine.write(sarif, to_sarif(result))
    if as_json:
        typer.echo(report.to_json(result, judged))
    else:
        typer.echo(report.to_markdown(result, tree=path.is_dir()))
        if judged is not None:
            typer.echo("\n".join(report.judged(judged)))
    return report.exit_code(result, judged)


def _audit_judged(path: Path, op_name: str, settings: Settings) -> Verified:
    """The judge's report on the audited file, by the way that `verify` goes."""
    from rich.console import Console

    from orchestrator import ops, verify
    from orchestrator.terminal import Terminal

    op, files = ops.load(op_name, _ops_root()), verify.read([str(path)])
    terminal = Terminal(Console(stderr=True))
    try:
        with verify.judge_log() as log:
            (verified,) = asyncio.run(_verify_on(files, op, settings, terminal, None, log))
    finally:
        terminal.close()
    return verified


def _check_ops(names: list[str], settings: Settings, *, as_json: bool) -> int:
    from orchestrator import opcheck, ops, records

    chosen = [ops.load(name, _ops_root()) for name in names or ops.names(_ops_root())]
    try:
        results = asyncio.run(_check_ops_on(chosen, settings, quiet=as_json))
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        return 130
    if as_json:
        typer.echo(records.to_json(results))
    return opcheck.exit_code(results)


async def _check_ops_on(chosen: list[Op], settings: Settings, *, quiet: bool) -> tuple[OpCheck, ...]:
    from orchestrator import opcheck, verify
    from orchestrator.executors.local import LocalExecutor

    results = []
    with verify.judge_log() as log:
        executor = LocalExecutor(settings.judge.device, log)
        try:
            for op in chosen:
                results.append(await opcheck.check(op, executor, quick=settings.judge.quick))
                if not quiet:
                    typer.echo("\n".join(opcheck.lines(results[-1])))
        finally:
            await executor.close()
    return tuple(results)


async def _verify_on(
    files: tuple[KernelFile, ...], op: Op, settings: Settings, terminal: Terminal, scripts: Path | None, log: Path
) -> tuple[Verified, ...]:
    from orchestrator.executors.local import LocalExecutor
    from orchestrator.verify import verify

    executor = LocalExecutor(settings.judge.device, log)
    try:
        return await verify(files, op, executor, settings.judge, terminal, scripts)
    finally:
        await executor.close()


def _redteam(settings: Settings, only: str | None, sample: int | None, layer: str, jobs: int, *, as_json: bool) -> int:
    from rich.console import Console

    from orchestrator import records, verify
    from orchestrator.redteam import entries, runner, score
    from orchestrator.terminal import Terminal

    layers = runner.layers(layer)
    chosen = entries.select(entries.read(), only, sample)
    terminal = Terminal(Console(stderr=as_json))
    try:
        with verify.judge_log() as log:
            finished = asyncio.run(_redteam_on(chosen, layers, settings, jobs, terminal, log))
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        return 130
    if as_json:
        typer.echo(records.to_json(finished))
    terminal.say("\n".join(score.table(finished)))
    return finished.exit_code


async def _redteam_on(
    chosen: tuple[Entry, ...], layers: tuple[str, ...], settings: Settings, jobs: int, terminal: Terminal, log: Path
) -> Score:
    from orchestrator import ops
    from orchestrator.executors.local import LocalExecutor
    from orchestrator.redteam import entries, runner

    executors = [LocalExecutor(settings.judge.device, log) for _ in range(min(jobs, len(chosen)))]
    try:
        op = ops.load(entries.OP, _ops_root())
        return await runner.run(chosen, layers, op, executors, settings.judge, terminal.say)
    finally:
        for executor in executors:
            await executor.close()


def _strictness(require_idle: bool, require_sandbox: bool) -> dict[str, dict[str, Any]]:
    return {"measure": {"require_idle": require_idle or None}, "judge": {"require_sandbox": require_sandbox or None}}


def _require_gpu(settings: Settings) -> None:
    """Before anything is started: to measure is to need a GPU."""
    from orchestrator import finish, gpu

    if settings.judge.device == "cpu" or not gpu.present():
        raise UsageError(finish.NOTHING_TO_MEASURE_ON)


def _bench(
    name: str, op_name: str, settings: Settings, out: Path | None, dtypes: tuple[str, ...], *, as_json: bool
) -> int:
    from rich.console import Console

    from orchestrator import bench, ops, verify
    from orchestrator.terminal import Terminal

    op, (file,) = ops.load(op_name, _ops_root()), verify.read([name])
    terminal = Terminal(Console(stderr=as_json))
    try:
        with verify.judge_log() as log, verify.kept_or_temporary(out) as folder:
            result = asyncio.run(_bench_on(file, op, settings, terminal, folder, log, dtypes))
    except KeyboardInterrupt:
        terminal.close()
        typer.echo("interrupted", err=True)
        return 130
    finally:
        terminal.close()
    typer.echo(bench.to_json(result) if as_json else bench.to_text(result))
    return bench.exit_code(result)


async def _bench_on(
    file: KernelFile, op: Op, settings: Settings, terminal: Terminal, folder: Path, log: Path, dtypes: tuple[str, ...]
) -> Benched:
    from orchestrator.bench import bench
    from orchestrator.executors.local import LocalExecutor

    executor = LocalExecutor(settings.judge.device, log)
    try:
        return await bench(file, op, executor, settings, terminal, folder, dtypes)
    finally:
        await executor.close()


def _measure(run_id: str, settings: Settings, workspaces: Path, *, as_json: bool) -> int:
    from rich.console import Console

    from orchestrator import finish, records
    from orchestrator.terminal import Terminal

    ended = finish.find(run_id, workspaces, _load_op)
    terminal = Terminal(Console(stderr=as_json))
    try:
        finished = asyncio.run(_measure_on(ended, settings, workspaces, terminal))
    except KeyboardInterrupt:
        terminal.close()
        typer.echo(f"interrupted; the record so far is in {ended.folder}", err=True)
        return 130
    finally:
        terminal.close()
    if as_json:
        typer.echo(records.to_json(finished))
    return finished.exit_code


async def _measure_on(ended: Ended, settings: Settings, workspaces: Path, terminal: Terminal) -> Run:
    from orchestrator import finish
    from orchestrator.executors.local import LocalExecutor

    executor = LocalExecutor(settings.judge.device, workspaces / "judge.log")
    try:
        with _entered(workspaces, terminal) as watch:
            return await finish.measure(ended, executor, settings, watch)
    finally:
        await executor.close()


def _adopt(run_id: str, reason: str, workspaces: Path) -> int:
    from rich.console import Console

    from orchestrator import finish
    from orchestrator.terminal import Terminal

    ended = finish.find(run_id, workspaces, _load_op)
    with _entered(workspaces, Terminal(Console())) as watch:
        return finish.adopt(ended, reason, watch).exit_code


def _load_op(name: str) -> Op:
    from orchestrator import ops

    return ops.load(name, _ops_root())


async def _dry_run(op: Op, settings: Settings) -> int:
    """Print the first prompt. The judge is asked where it would judge, since the prompt says so; nothing is kept."""
    from orchestrator.agents.render import render
    from orchestrator.executors.local import LocalExecutor
    from orchestrator.prompts import Prompts

    with tempfile.TemporaryDirectory() as folder:
        executor = LocalExecutor(settings.judge.device, Path(folder) / "judge.log")
        try:
            judging = await executor.start()
        finally:
            await executor.close()
    typer.echo(render(Prompts(op, judging, settings.loop.rounds).generate()))
    return 0
