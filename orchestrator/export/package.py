"""The files of an exported kernel, by path. Writes nothing but into a folder that is new or empty.

Owns which files there are. The kernel, the reference, the specification and the test are byte for byte those that the
judge had; the wrapper and the rest come from templates/export.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from orchestrator import resources
from orchestrator.decision import render as render_decision
from orchestrator.errors import UsageError
from orchestrator.export import certificate, envelope
from orchestrator.export.bindings import bindings
from orchestrator.export.certificate import Certificate
from orchestrator.export.source import Source
from orchestrator.records import Judging, to_json
from orchestrator.tree import os_errors


class Layout(StrEnum):
    """How the folder is laid out."""

    PACKAGE = "package"  # a Python package
    KERNELS = "kernels"  # a project of Hugging Face's kernel-builder


@dataclass(frozen=True)
class Package:
    """An exported kernel."""

    name: str  # of the Python package
    files: dict[str, bytes]  # by path, from the top of the folder
    certificate: Certificate
    decision: str  # as Markdown


def made(source: Source, layout: Layout = Layout.PACKAGE, within: str = "") -> Package:
    """The package. `within` is the folder of a repository into which it is put: its CI job has to know."""
    spec = source.op.spec
    name = f"{spec.name}_kernel"
    where = envelope.of(spec, source.attempt.report, source.measured)
    decision = _decision(source)
    facts = {
        "op": spec,
        "name": name,
        "envelope": where,
        "sizes": bindings(spec),
        "run": source.run,
        "report": source.attempt.report,
        "measurement": source.run.measurement,
        "hub": layout is Layout.KERNELS,
        "folder": PurePosixPath(within) / _place(layout, name),
    }
    inside = {
        **source.files,
        spec.kernel_name: source.kernel,
        "DECISION.md": decision.encode(),
        "__init__.py": _rendered("wrapper.py.j2", **facts),
    }
    found = certificate.certify(source, where, inside)
    inside[certificate.NAME] = to_json(found).encode()
    files = {f"{_place(layout, name)}/{path}": data for path, data in inside.items()}
    files |= {path: _rendered(template, **facts) for path, template in _around(layout, name).items()}
    return Package(name, files, found, decision)


def _place(layout: Layout, name: str) -> str:
    return name if layout is Layout.PACKAGE else f"torch-ext/{name}"


def _around(layout: Layout, name: str) -> dict[str, str]:
    """The files outside the Python package: their paths and their templates."""
    common = {"README.md": "README.md.j2", f".github/workflows/{name}.yml": "workflow.yml.j2"}
    if layout is Layout.KERNELS:
        return {**common, "build.toml": "build.toml.j2", "flake.nix": "flake.nix.j2"}
    return {**common, "pyproject.toml": "pyproject.toml.j2"}


def _decision(source: Source) -> str:
    report = source.attempt.report
    judging = Judging(report.device, report.interpreted, report.versions, report.sandbox)
    if source.run.verdict is None:
        return f"# Undecided\n\n{source.run.error or 'The run did not end.'}\n"
    return render_decision(source.run, source.op, judging, source.attempt, source.measured)


def require_free(folder: Path) -> None:
    """Raises UsageError where it is neither new nor empty."""
    with os_errors(f"look into {folder}"):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is no folder; name a new one with --to")
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; name a new folder with --to, or empty it")


def write(package: Package, folder: Path) -> None:
    """Into a folder that is free."""
    with os_errors(f"write into {folder}"):
        for path, data in package.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _rendered(template: str, **facts: object) -> bytes:
    environment = resources.environment(resources.templates() / "export", python=repr)
    return environment.get_template(template).render(**facts).encode()
