"""`audit`: known faults of existing kernels, and the judge's verdict beside them where an op is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("audit")(audit_files)


def audit_files(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A kernel file, or a tree of them.")],
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Also judge the file as a kernel of this op.")] = None,
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
    from orchestrator import library
    from orchestrator.audit import engine, report
    from orchestrator.audit.sarif import to_sarif

    if op is not None and path.is_dir():
        raise UsageError(f"--op judges one file, {path} is a folder; give the file")
    settings = options.settings(config, override, options.judge(device))
    result, judged = engine.audit(path), None
    if op is not None:
        asked, terminal = options.op(op), carry.terminal(to_stderr=True)
        (judged,) = carry.carried(lambda: library.verify(path, op=asked, settings=settings, watch=terminal), terminal)
    if sarif is not None:
        engine.write(sarif, to_sarif(result))
    if json:
        typer.echo(report.to_json(result, judged))
    else:
        typer.echo(report.to_markdown(result, tree=path.is_dir()))
        if judged is not None:
            typer.echo("\n".join(report.judged(judged)))
    raise typer.Exit(report.exit_code(result, judged))
