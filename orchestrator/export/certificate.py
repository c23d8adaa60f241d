"""The evidence for an exported kernel, in a file beside it; and whether the files are those that it is about.

Owns the certificate's form. It is no signature: whoever can change a file can change it too. What proves a kernel is
the judge, asked again (`verify-certificate --rerun`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from orchestrator import __version__, weigh
from orchestrator.errors import UsageError
from orchestrator.export.envelope import Envelope
from orchestrator.export.source import Source
from orchestrator.measured import Measured
from orchestrator.records import Measurement, Parameter, Record, from_json
from orchestrator.text import printable
from orchestrator.tree import os_errors

NAME = "certificate.json"
_IGNORED = {"__pycache__", NAME, "_ops.py"}  # _ops.py: what the builder of the Hub's layout adds


@dataclass(frozen=True)
class Judged(Record):
    """The verdict that the kernel passed."""

    device: str
    interpreted: bool
    versions: dict[str, str]
    seed: int | None
    passed: int
    cases: int
    holdouts: int  # of them drawn for this verdict
    notes: tuple[str, ...]  # grey things that were allowed
    not_confined: tuple[str, ...]  # pieces of the confinement that the machine lacked


@dataclass(frozen=True)
class Row(Record):
    """One shape as it was timed."""

    name: str
    latency_us: float
    gbps: float
    ceiling_share: float
    speedup_low: float  # the interval's ends, over the fastest baseline
    speedup_high: float
    baseline: str
    launch_bound: bool


@dataclass(frozen=True)
class Timed(Record):
    """The measurement that decided; `rows` show every shape."""

    summary: Measurement
    gpu: str
    versions: dict[str, str]
    seed: int
    rounds: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Certificate(Record):
    """What is known of an exported kernel."""

    op: str
    entry: str
    kernel: str  # file name
    files: dict[str, str]  # SHA-256 of each file beside this one, by name
    run: str
    attempt: int
    commit: str
    baseline: str
    decision: str
    reason: str
    agent: str
    model: str
    judged: Judged
    timed: Timed | None
    envelope: Envelope
    parameters: dict[str, Parameter]
    exported: str  # ISO 8601, UTC
    exporter: str
    format: int = field(default=1)


def certify(source: Source, envelope: Envelope, files: Mapping[str, bytes]) -> Certificate:
    """The certificate of a kernel as it is exported; `files` are those beside it."""
    run, attempt, verdict = source.run, source.attempt, source.run.verdict
    return Certificate(
        op=source.op.name,
        entry=source.op.spec.entry,
        kernel=source.op.spec.kernel_name,
        files={name: sha256(data) for name, data in sorted(files.items())},
        run=run.id,
        attempt=attempt.number,
        commit=str(attempt.commit),
        baseline=run.baseline,
        decision=str(verdict.decision) if verdict else "undecided",
        reason=verdict.reason if verdict else run.error,
        agent=run.agent,
        model=attempt.model,
        judged=_judged(source),
        timed=_timed(source.measured, run.measurement),
        envelope=envelope,
        parameters=source.op.spec.parameters,
        exported=datetime.now(UTC).isoformat(timespec="seconds"),
        exporter=f"triton-kernel-orchestrator {__version__}",
    )


def _judged(source: Source) -> Judged:
    report = source.attempt.report
    return Judged(
        device=report.device,
        interpreted=report.interpreted,
        versions=report.versions,
        seed=report.seed,
        passed=report.passed_cases,
        cases=report.expected_cases,
        holdouts=sum(case.holdout for case in report.cases),
        notes=report.notes,
        not_confined=tuple(piece.name for piece in report.sandbox if not piece.held),
    )


def _timed(measured: Measured | None, summary: Measurement | None) -> Timed | None:
    if measured is None or summary is None:
        return None
    rows = (
        Row(
            *(row.name, row.latency_us, row.gbps, row.ceiling_share, row.speedup.low, row.speedup.high),
            *(row.best, row.launch_bound),
        )
        for row in weigh.rows(measured)
    )
    gpu = measured.before.name if measured.before else "not named by the driver"
    return Timed(summary, gpu, measured.versions, measured.seed, measured.rounds, tuple(rows))


def sha256(data: bytes) -> str:
    """As the certificate has it."""
    return hashlib.sha256(data).hexdigest()


def find(folder: Path) -> Path:
    """The certificate in an exported folder. Raises UsageError."""
    if (folder / NAME).is_file():
        return folder / NAME
    found = [*folder.glob(f"*/{NAME}"), *folder.glob(f"torch-ext/*/{NAME}")]
    if len(found) != 1:
        what = "no certificate.json" if not found else f"{len(found)} certificates"
        raise UsageError(f"{printable(str(folder))} holds {what}; name the folder that `export --to` made")
    return found[0]


def read(path: Path) -> Certificate:
    """Raises UsageError for what is no certificate."""
    try:
        return from_json(Certificate, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "its top"
        raise UsageError(f"{path} is no certificate: at {printable(where)}: {printable(str(first['msg']))}") from error


def changed(certificate: Certificate, folder: Path) -> tuple[str, ...]:
    """What is not as certified among the files, each in a sentence; () where all are."""
    with os_errors(f"read {folder}"):
        there = {path.name: path for path in folder.iterdir() if path.name not in _IGNORED}
        found = []
        for name, digest in certificate.files.items():
            path = there.pop(name, None)
            if path is None or not path.is_file():
                found.append(f"{name} is missing")
            elif (now := sha256(path.read_bytes())) != digest:
                found.append(f"{name} is another file: SHA-256 {now[:12]}…, certified {digest[:12]}…")
    found += [f"{printable(name)} is not in the certificate" for name in sorted(there)]
    return tuple(found)
