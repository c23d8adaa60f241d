"""From a reply to a report: tree, guard, policy, judge, in this order, each only if the one before found nothing.

Owns that order. What each step knows is its own; nothing here looks inside a kernel.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import guard, policy, reply, tree
from orchestrator.config import JudgeSettings
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.records import Job, Reply, Report, Status
from orchestrator.workspace import RunBranch, attempt_folder

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
    """The verdict on a model's reply. `folder` is the attempt's; the judge's job folder is made in it."""
    kernel_name = op.spec.kernel_name
    with attempt_folder(branch.files) as place:
        written = tree.write_reply_files(place, reply.files(answer.text, kernel_name, op.spec.function))
        touched = (*written, *guard.touched(branch.files, place, kernel_name))
        kernel = tree.read_kernel(place, kernel_name)
    if touched:
        report = Report.rejected(touched)
    elif kernel is None:
        report = _no_code(kernel_name)
    else:
        report = await judge_kernel(kernel, op, branch, executor, settings, folder)
    if answer.truncated and not report.passed:
        report = replace(report, notes=(_CUT_OFF, *report.notes))
    return Judged(report, kernel)


async def judge_kernel(
    kernel: bytes, op: Op, branch: RunBranch, executor: Executor, settings: JudgeSettings, folder: Path
) -> Report:
    """The verdict on a kernel file: what it may say, then what it does."""
    spec = op.spec
    checked = policy.check(
        kernel,
        filename=spec.kernel_name,
        entry=spec.function,
        allow=frozenset(spec.host_operations),
        tensors=frozenset(spec.inputs),
    )
    if checked.findings:
        return Report.rejected(checked.findings, checked.notes)
    job_folder = folder / "job"
    branch.export(job_folder, spec.kernel_name, kernel)
    (job_folder / "scratch").mkdir()
    try:
        report = await executor.judge(_job(op, settings, job_folder))
    finally:
        tree.remove_tree(job_folder / "scratch")
    return replace(report, notes=(*checked.notes, *report.notes))


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
        limits=settings.limits,
    )


def _no_code(kernel: str) -> Report:
    return Report(
        Status.NO_CODE,
        f"the reply holds no code block with {kernel}",
        detail=f"Answer with the whole file in one fenced block that starts with ```python {kernel}",
    )
