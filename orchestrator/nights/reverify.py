"""One champion under tonight's torch, triton, driver and card: judged, audited, timed where there is a GPU.

Owns that order and when a failure counts: a verdict that is not PASSED, also one of timing it, is asked for a second
time with the same values, so that no champion falls by a process that something else killed. The verdict is the
judge's, the findings the audit's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator import weigh
from orchestrator.attempt import judge_kernel
from orchestrator.audit import engine
from orchestrator.audit.findings import Severity
from orchestrator.config import Settings
from orchestrator.errors import InfrastructureError
from orchestrator.executors import Executor
from orchestrator.measured import Measured
from orchestrator.measuring import Rivals, measure_kernel, unmeasurable
from orchestrator.nights import champions, compare
from orchestrator.nights.champions import Held
from orchestrator.nights.story import CHECKED, Checked
from orchestrator.records import Judging, Report, Status, from_json, to_json
from orchestrator.text import printable
from orchestrator.tree import os_errors, remove_tree, write_whole
from orchestrator.verifying import rendering

NO_GPU = "no GPU here: correctness only"


async def reverify(
    held: Held, executor: Executor, settings: Settings, judging: Judging, workspaces: Path, folder: Path
) -> Checked:
    """What the night finds of a champion; what a killed night has found of it is taken as it is."""
    if (folder / CHECKED).is_file():
        return from_json(Checked, (folder / CHECKED).read_bytes())
    report = await _judged(held, executor, settings, folder / "first")
    checked = Checked(
        held.standing,
        report.status,
        printable(report.message, 400),
        report.passed_cases,
        report.expected_cases,
        grave=_grave(held),
    )
    if not report.passed and report.status is not Status.INFRASTRUCTURE:
        again = await _judged(held, executor, _with_seed(settings, report.seed), folder / "again")
        checked = replace(checked, again=again.status)
    if checked.holds:
        checked = await _timed(checked, held, executor, settings, judging, workspaces, folder)
    write_whole(folder / CHECKED, to_json(checked))
    return checked


async def _judged(held: Held, executor: Executor, settings: Settings, folder: Path) -> Report:
    """A verdict. A failure of ours is that champion's, and the others are judged."""
    with os_errors(f"make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        remove_tree(folder / "job")  # of a night that was killed
    try:
        return await judge_kernel(
            held.champion.kernel, held.op, rendering(held.op), executor, settings.judge, folder=folder
        )
    except InfrastructureError as error:
        return Report(Status.INFRASTRUCTURE, printable(str(error), 400))


async def _timed(
    checked: Checked,
    held: Held,
    executor: Executor,
    settings: Settings,
    judging: Judging,
    workspaces: Path,
    folder: Path,
) -> Checked:
    """With its speed, or why it has none. A kernel that is convicted while it is timed, and again, has not passed."""
    if judging.interpreted:
        return replace(checked, unmeasured=NO_GPU)
    if why := unmeasurable(held.op, judging):
        return replace(checked, unmeasured=why)
    record, where = champions.record(held, workspaces)
    measured = await _measured(held, executor, settings, folder)
    if isinstance(measured, InfrastructureError):
        return replace(checked, unmeasured=printable(str(measured), 400))
    if measured.status is not Status.PASSED:
        again = await _measured(held, executor, _with_seed(settings, measured.seed), folder / "timed-again")
        return replace(
            checked,
            status=measured.status,
            message=f"while it was timed: {measured.message}",
            again=Status.INFRASTRUCTURE if isinstance(again, InfrastructureError) else again.status,
        )
    if fault := weigh.fault(measured):
        return replace(checked, unmeasured=fault)
    floor = held.op.spec.thresholds(settings.decision).margin_floor
    return replace(checked, speed=compare.speed(measured, record, where, floor))


async def _measured(held: Held, executor: Executor, settings: Settings, folder: Path) -> Measured | InfrastructureError:
    """How fast it is. A failure of ours is that champion's, and the others are timed."""
    try:
        with os_errors(f"make {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            remove_tree(folder / "job")  # of a night that was killed
        return await measure_kernel(
            *(held.champion.kernel, Rivals(), held.op, rendering(held.op), executor, settings, folder),
            tell=lambda text: None,
        )
    except InfrastructureError as error:
        return error


def _with_seed(settings: Settings, seed: int | None) -> Settings:
    """The same values once more."""
    return settings.model_copy(update={"judge": settings.judge.model_copy(update={"seed": seed})})


def _grave(held: Held) -> tuple[str, ...]:
    """What the audit finds of severity high. No line numbers: the same finding is the same words every night."""
    audit = engine.audit_bytes(held.champion.kernel, held.champion.name)
    unread = (f"cannot be read: {audit.unread}",) if audit.unread else ()
    grave = [one for one in audit.findings if one.severity is Severity.HIGH]
    return (*unread, *(f"{one.rule}, line {one.line}: {one.message}" for one in grave))
