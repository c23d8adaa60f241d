"""`audit`: known faults of existing kernels, and what compiling, judging, measuring and sanitizing them bring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.audit.findings import Audit
    from orchestrator.audit.running import Evidence
    from orchestrator.config import Settings
    from orchestrator.ops import Op
    from orchestrator.verifying import KernelFile


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
    from orchestrator import library, verifying
    from orchestrator.audit import engine, report
    from orchestrator.audit.running import NOTHING_RUN
    from orchestrator.audit.sarif import to_sarif

    if op is not None and path.is_dir():
        raise UsageError(f"--op judges one file, {path} is a folder; give the file")
    if op is None and (measure or sanitize):
        raise UsageError(f"--{'measure' if measure else 'sanitize'} runs the file as a kernel of an op; give --op NAME")
    settings = options.settings(config, override, options.judge(device))
    if measure or sanitize:
        library.require_gpu(settings)
    result, evidence = engine.audit(path), NOTHING_RUN
    if op is not None:
        (file,) = verifying.read([str(path)])
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
    from orchestrator import library
    from orchestrator.audit.running import Evidence
    from orchestrator.audit.sanitizer import sanitize as under_sanitizer
    from orchestrator.verifying import Verified

    terminal = carry.terminal(to_stderr=True)
    if measure:
        timed = carry.carried(lambda: library.measure(file, op=op, settings=settings, watch=terminal), terminal)
        judged = Verified(timed.file, timed.sha256, timed.report)
        found = Evidence(judged, op.spec.precision, measured=timed.measured)
    else:
        (judged,) = carry.carried(lambda: library.verify(file, op=op, settings=settings, watch=terminal), terminal)
        found = Evidence(judged, op.spec.precision)
    return replace(found, sanitized=under_sanitizer(file.data, file.name, op)) if sanitize else found


def _with_evidence(result: Audit, evidence: Evidence, file: KernelFile) -> Audit:
    """The audit with the findings that compiling and sanitizing brought."""
    from orchestrator.audit import compiled, engine

    assert evidence.judged is not None
    found = list(compiled.findings(evidence.judged.report.compiled, file.data, file.name))
    found += evidence.sanitized.findings if evidence.sanitized is not None else ()
    return engine.with_more(result, found, file.data)
