"""`export` and `verify-certificate`: a kernel as a package with its evidence, and the evidence checked."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import carry, options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.export.certificate import Certificate


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("export")(export_kernel)
    app.command("verify-certificate")(verify_certificate)


def export_kernel(
    target: Annotated[str, typer.Argument(metavar="OP|RUN", help="An op, for its champion, or a run, for its best.")],
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write it; a new or empty folder.")] = None,
    layout: Annotated[
        str, typer.Option(metavar="NAME", help="package, or kernels: a project of Hugging Face's kernel-builder.")
    ] = "package",
    pr: Annotated[bool, typer.Option("--pr", help="Also prepare a branch in --repo; nothing is pushed.")] = False,
    repo: Annotated[Path | None, typer.Option(metavar="PATH", help="A checkout of yours; it stays as it is.")] = None,
    into: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Of that repository. [default: <op>-kernel]")
    ] = None,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="[default: kernel/<op>-<hash>]")] = None,
    ops_dir: options.OpsDir = None,
    workspaces: options.Workspaces = options.WORKSPACES,
) -> None:
    """Write a kernel as a package: wrapper, test, CI job, certificate.

    The wrapper calls the kernel where it was verified, and the reference everywhere else.
    """
    from orchestrator.export import package, pull_request, source

    if to is None:
        raise UsageError("nowhere to write it: give --to DIR, a new folder")
    if pr != (repo is not None):
        raise UsageError("--pr prepares a branch in a repository: give both --pr and --repo PATH, or neither")
    if not pr and (into is not None or branch is not None):
        raise UsageError("--into and --branch are of --pr: give --pr and --repo PATH")
    if layout not in list(package.Layout):
        raise UsageError(f"--layout {layout}: there are {', '.join(package.Layout)}")
    found = source.find(target, workspaces, options.catalogue(ops_dir).load)
    package.require_free(to)
    prepared = None
    if repo is not None:
        folder = (into or f"{found.op.name}-kernel").strip("/")
        inside = package.made(found, package.Layout(layout), folder)
        prepared = pull_request.prepare(inside, found, repo, folder, branch)
    made = package.made(found, package.Layout(layout))
    package.write(made, to)
    typer.echo(f"{made.name} of {found.run.id}, attempt {found.attempt.number}: {to}")
    typer.echo(f"verified on {made.certificate.judged.device}; anywhere else its wrapper takes the reference")
    if prepared is None:
        return
    body = to / "PULL_REQUEST.md"
    body.write_text(prepared.body, encoding="utf-8")
    typer.echo(f"branch {prepared.name} in {prepared.repository}: {prepared.commit[:12]}; its text: {body}")
    typer.echo(f"nothing was pushed: git -C {prepared.repository} push -u origin {prepared.name}")


def verify_certificate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `export --to` made, wherever it is now.")],
    rerun: Annotated[bool, typer.Option("--rerun", help="Have the judge here decide on the kernel again.")] = False,
    device: options.Device = None,
    quick: options.Quick = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Of a rerun's values. [default: the certificate's]")
    ] = None,
    require_sandbox: options.RequireSandbox = False,
    ops_dir: options.OpsDir = None,
    config: options.Config = None,
    override: options.Override = None,
) -> None:
    """Check an exported kernel against its certificate.

    Exit code 0 when every file is as certified and, with --rerun, the kernel passes here; 1 when not.
    """
    from orchestrator.export import certificate

    path = certificate.find(folder)
    found = certificate.read(path)
    wrong = certificate.changed(found, path.parent)
    for line in _said(found):
        typer.echo(line)
    for sentence in wrong:
        typer.echo(f"not as certified: {sentence}")
    if wrong:
        raise typer.Exit(1)
    typer.echo(f"all {len(found.files)} files are as certified")
    if rerun:
        given = options.judge(device, quick, found.judged.seed if seed is None else seed, require_sandbox)
        raise typer.Exit(_judged_here(found, path.parent, options.settings(config, override, given), ops_dir))


def _judged_here(found: Certificate, folder: Path, settings: Settings, ops_dir: Path | None) -> int:
    """The verdict of the judge here; by this op, which must be the one that was exported."""
    from orchestrator import library, verifying
    from orchestrator.export import certificate

    op = options.op(found.op, ops_dir)
    differing = [
        name for name, data in op.workspace_files().items() if found.files.get(name) != certificate.sha256(data)
    ]
    if differing:
        raise UsageError(
            f"the op {op.name} here is another than the exported one ({', '.join(differing)}): its own test is "
            f"`python test_correctness.py` in {folder}"
        )
    terminal = carry.terminal(to_stderr=False)
    kernel = folder / found.kernel
    results = carry.carried(lambda: library.verify(kernel, op=op, settings=settings, watch=terminal), terminal)
    terminal.say(verifying.summary(results, None))
    return verifying.exit_code(results)


def _said(found: Certificate) -> list[str]:
    """What is certified, in a few lines, and what is otherwise here."""
    judged = found.judged
    lines = [
        f"{found.op}: {found.entry}, attempt {found.attempt} of {found.run} by {found.agent} ({found.model})",
        f"decision {found.decision}: {found.reason}",
        f"{judged.passed} of {judged.cases} cases passed on {judged.device}, {judged.holdouts} of them drawn for it",
    ]
    if found.timed is None:
        lines.append("speed: not measured")
    else:
        summary = found.timed.summary
        interval = f"{summary.speedup_low:.2f} to {summary.speedup_high:.2f}"
        lines.append(f"speed: {interval} times {summary.baseline} on {found.timed.gpu}")
    lines += [f"not confined while it was judged: {name}" for name in judged.not_confined]
    for name in ("torch", "triton"):
        here, then = _version(name), judged.versions.get(name, "not said")
        if here != then:
            lines.append(f"{name} is {here} here, and it was judged with {then}")
    return lines


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
