"""From a reply to a report: tree, guard, policy and signature, judge, audit; each only if what came before found
nothing.

Owns that order. What each step knows is its own; nothing here looks inside a kernel.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from orchestrator import entry_checks, guard, kept, policy, reply, signature, tree
from orchestrator.audit import engine as audit
from orchestrator.config import JudgeSettings
from orchestrator.errors import JudgeError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.records import AuditFinding, Finding, Job, Judging, Reply, Report, Status, from_json
from orchestrator.text import printable
from orchestrator.workspace import RunBranch, attempt_folder

# Writes the op's own files and the one kernel into a new folder: (folder, kernel's name, its bytes).
Export: TypeAlias = Callable[[Path, str, bytes], None]

REPORT = "report.json"  # in the attempt's folder; whole or not there
_QUOTED = 500  # characters of a finding's message or a note
_CUT_OFF = (
    "the reply was cut off at its limit of tokens: answer with less text around the code, or raise agent.max_tokens"
)


@dataclass(frozen=True)
class Judged:
    """What came of a reply: the report, and the kernel file's bytes if there were any."""

    report: Report
    kernel: bytes | None


async def judge_reply(
    answer: Reply, op: Op, branch: RunBranch, executor: Executor, settings: JudgeSettings, folder: Path
) -> Judged:
    """The verdict on a model's reply. `folder` is the attempt's; the judge's job folder is made in it.

    A verdict that is kept there already, of a run that was killed, is the verdict.
    """
    kernel_name = op.spec.kernel_name
    touched, kernel = _looked_at(answer, op, branch, folder)
    if (known := folder / REPORT).is_file():
        return Judged(from_json(Report, known.read_bytes()), kernel)
    if touched:
        report = Report.rejected(touched)
    elif kernel is None:
        report = _no_kernel(kernel_name) if answer.in_tree else _no_code(kernel_name)
    else:
        report = await judge_kernel(kernel, op, branch.export, executor, settings, folder)
    if answer.truncated and not report.passed:
        report = replace(report, notes=(_CUT_OFF, *report.notes))
    return Judged(report, kernel)


def _looked_at(answer: Reply, op: Op, branch: RunBranch, folder: Path) -> tuple[tuple[Finding, ...], bytes | None]:
    """What the guard finds in the tree that a reply comes to, and the kernel file in it."""
    name = op.spec.kernel_name
    if answer.in_tree:
        place = folder / kept.TREE
        return guard.touched(branch.files, place, name), tree.read_kernel(place, name)
    with attempt_folder(branch.files) as place:
        written = tree.write_reply_files(place, reply.files(answer.text, name, op.spec.function))
        return (*written, *guard.touched(branch.files, place, name)), tree.read_kernel(place, name)


async def judge_kernel(
    kernel: bytes, op: Op, export: Export, executor: Executor, settings: JudgeSettings, folder: Path
) -> Report:
    """The verdict on a kernel file: what it may say, what it does, then what known faults its source shows.

    `folder` is where the job folder is made.
    """
    spec = op.spec
    checked = policy.check(
        kernel,
        filename=spec.kernel_name,
        entry=spec.function,
        allow=frozenset(spec.host_operations),
        tensors=frozenset(spec.inputs),
    )
    misfit = signature.check(kernel, spec)
    unsaid = entry_checks.notes(kernel, spec) if spec.entry_checks else ()
    notes = tuple(printable(note, _QUOTED) for note in (*checked.notes, *unsaid))
    if findings := (*checked.findings, *([misfit] if misfit else [])):
        return Report.rejected(tuple(_capped(finding) for finding in findings), notes)
    report = await run_kernel(kernel, op, export, executor, settings, folder)
    found: tuple[AuditFinding, ...] = ()
    if report.passed:
        found = audit.established(kernel, spec.kernel_name, report.versions.get("triton", ""), report.compiled)
    every = tuple(dict.fromkeys((*notes, *report.notes)))  # of a remembered verdict they are there
    return replace(report, notes=every, audit=found)


async def run_kernel(
    kernel: bytes, op: Op, export: Export, executor: Executor, settings: JudgeSettings, folder: Path
) -> Report:
    """The verdict on what a kernel file does, whatever it says: no policy. `redteam` asks for it by itself."""
    job_folder = folder / "job"
    export(job_folder, op.spec.kernel_name, kernel)
    (job_folder / "scratch").mkdir()
    try:
        return await executor.judge(_job(op, settings, job_folder))
    finally:
        tree.remove_tree(job_folder / "scratch")


def require_sandbox(judging: Judging) -> None:
    """Raises JudgeError where the machine lacks a piece of the confinement."""
    if missing := [piece for piece in judging.sandbox if not piece.held]:
        named = "; ".join(f"{piece.name} ({piece.detail})" for piece in missing)
        raise JudgeError(f"--require-sandbox: this machine lacks {named}")


def _job(op: Op, settings: JudgeSettings, folder: Path) -> Job:
    return Job(
        id=folder.parent.name,
        nonce=secrets.token_hex(16),
        folder=str(folder.resolve()),
        op=op.name,
        kernel=op.spec.kernel_name,
        function=op.spec.function,
        arguments=tuple(op.spec.inputs),
        parameters=op.spec.parameters,
        quick=settings.quick,
        seed=settings.seed,
        skip=settings.skip_checks,
        first_failure=settings.first_failure,
        limits=settings.limits,
        in_place=op.spec.in_place,
        repeatable=op.spec.repeatable,
        host_operations=op.spec.host_operations,
    )


def _capped(finding: Finding) -> Finding:
    """A finding quotes names of the file, and a name may be as long as a file."""
    return replace(finding, message=printable(finding.message, _QUOTED), advice=printable(finding.advice, _QUOTED))


def _no_code(kernel: str) -> Report:
    return Report(
        Status.NO_CODE,
        f"the reply holds no code block with {kernel}",
        detail=f"Answer with the whole file in one fenced block that starts with ```python {kernel}",
    )


def _no_kernel(kernel: str) -> Report:
    return Report(Status.NO_CODE, f"there is no {kernel} in the tree", detail=f"Write the whole file {kernel}")
