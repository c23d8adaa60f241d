"""`audit`: known faults of existing kernels, and what compiling, judging, measuring and sanitizing them bring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import bench as benches
from orchestrator.cli import carry, options, verify
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.audit.findings import Audit
    from orchestrator.audit.running import Evidence
    from orchestrator.config import Settings
    from orchestrator.ops import Op
    from orchestrator.verify import KernelFile


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("audit")(audit_files)


def audit_files(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A kernel file, or a tree of them.")],
    op: Annotated[
        str | None, typer.Option(metavar="NAME", help="Also judge the file as a kernel of this op, and compile it.")
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="With --op, on a GPU: also measure it.")] = False,
    sanitize: Annotated[
        bool,
        typer.Option("--sanitize", help="With --op, on a GPU: run it under compute-sanitizer, without confinement."),
    ] = False,
    ops_dir: options.OpsDir = None,
    device: options.Device = None,
    config: options.Config = None,
    override: options.Override = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings here as SARIF 2.1.0.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look through kernel files for known faults, by their source.

    Exit code 1 when a finding is of severity high (or, with --op, the file does not pass), else 0.
    `# audit: ignore RULE reason` on a line silences a rule there.
    """
    from orchestrator.audit import engine, report
    from orchestrator.audit.running import NOTHING_RUN
    from orchestrator.audit.sarif import to_sarif
    from orchestrator.verify import read

    if op is not None and path.is_dir():
        raise UsageError(f"--op judges one file, {path} is a folder; give the file")
    if op is None and (measure or sanitize):
        raise UsageError(f"--{'measure' if measure else 'sanitize'} runs the file as a kernel of an op; give --op NAME")
    settings = options.settings(config, override, options.judge(device))
    if measure or sanitize:
        benches.require_gpu(settings)
    result, evidence = engine.audit(path), NOTHING_RUN
    if op is not None:
        (file,) = read([str(path)])
        evidence = _evidence(file, options.op(op, ops_dir), settings, measure=measure, sanitize=sanitize)
        result = _with_evidence(result, evidence, file)
    if sarif is not None:
        engine.write(sarif, to_sarif(result))
    text = (
        report.to_json(result, evidence) if json else report.to_markdown(result, tree=path.is_dir(), evidence=evidence)
    )
    typer.echo(text)
    raise typer.Exit(report.exit_code(result, evidence))


def _evidence(file: KernelFile, op: Op, settings: Settings, *, measure: bool, sanitize: bool) -> Evidence:
    from orchestrator.audit.running import Evidence
    from orchestrator.audit.sanitizer import sanitize as under_sanitizer

    if measure:
        found = replace(_measured(file, op, settings), precision_bound=op.spec.precision)
    else:
        (judged,) = verify.judged((file,), op, settings, carry.terminal(to_stderr=True))
        found = Evidence(judged, op.spec.precision)
    return replace(found, sanitized=under_sanitizer(file.data, file.name, op)) if sanitize else found


def _measured(file: KernelFile, op: Op, settings: Settings) -> Evidence:
    """Judged, and where it passes measured, as `bench` does."""
    from orchestrator import bench, verify
    from orchestrator.audit.running import Evidence
    from orchestrator.verify import Verified

    terminal = carry.terminal(to_stderr=True)

    async def work(folder: Path, log: Path) -> bench.Benched:
        async with carry.judge(settings, log) as executor:
            return await bench.bench(file, op, executor, settings, terminal, folder)

    with verify.judge_log() as log, verify.kept_or_temporary(None) as folder:
        found = carry.through(work(folder, log), terminal)
    return Evidence(Verified(found.file, found.sha256, found.report), measured=found.measured)


def _with_evidence(result: Audit, evidence: Evidence, file: KernelFile) -> Audit:
    """The audit with the findings that compiling and sanitizing brought."""
    from orchestrator.audit import compiled, engine

    assert evidence.judged is not None
    found = list(compiled.findings(evidence.judged.report.compiled, file.data, file.name))
    found += evidence.sanitized.findings if evidence.sanitized is not None else ()
    return engine.with_more(result, found, file.data)
