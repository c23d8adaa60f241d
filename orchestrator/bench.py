"""A kernel file measured by itself: judged first, then timed beside the op's baselines. No model, no git.

Owns the order and what it comes to as an exit code. A file that is not correct is not timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator import decision, records, weigh
from orchestrator.attempt import judge_kernel
from orchestrator.config import Settings
from orchestrator.decide import decide, least_inside
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.measured import Measured
from orchestrator.measuring import Rivals, measure_kernel, started
from orchestrator.ops import Op
from orchestrator.records import Judging, Measurement, Record, Report, Status, Verdict
from orchestrator.tree import lay_out
from orchestrator.verifying import KernelFile


@dataclass(frozen=True)
class Benched(Record):
    """What one file came to. verdict: what a run would decide of it, with nothing left to try."""

    file: str
    sha256: str | None
    report: Report
    measured: Measured | None = None
    measurement: Measurement | None = None
    verdict: Verdict | None = None


class Watch(Protocol):
    """Told of each step as it happens."""

    def verifying(self, judging: Judging) -> None:
        """The judge is ready."""

    def verified(self, file: str, report: Report) -> None:
        """The file has its verdict."""

    def measuring(self, text: str) -> None:
        """How far the measurement is."""


async def bench(
    file: KernelFile,
    op: Op,
    executor: Executor,
    settings: Settings,
    watch: Watch,
    folder: Path,
    dtypes: tuple[str, ...] = (),
) -> Benched:
    """Judge the file and, if it passes, time it, with all of the op's dtypes if none are given.

    The evidence is left in `folder`.
    """
    if unknown := set(dtypes) - set(op.spec.bench.dtypes):
        raise UsageError(f"--dtype {sorted(unknown)[0]}: {op.name} is measured with {', '.join(op.spec.bench.dtypes)}")
    judging = await started(executor, settings, op)
    watch.verifying(judging)
    report = await judge_kernel(file.data, op, _export(op), executor, settings.judge, folder / "judged")
    watch.verified(file.name, report)
    if not report.passed:
        return Benched(file.name, file.sha256, report)
    measured = await measure_kernel(
        *(file.data, Rivals(), op, _export(op), executor, settings, folder), tell=watch.measuring, dtypes=dtypes
    )
    return _weighed(Benched(file.name, file.sha256, report, measured), op, settings)


def exit_code(result: Benched) -> int:
    """0 measured, 1 not correct or convicted while it was timed, 3 no measurement and the reason is ours."""
    if not result.report.passed:
        return 3 if result.report.status is Status.INFRASTRUCTURE else 1
    if result.measured is None or result.measured.status is not Status.PASSED:
        return 1
    return 0 if result.measurement is not None else 3


def to_text(result: Benched) -> str:
    """The measurement for a person, as Markdown; what was wrong where there is none."""
    if result.measured is None:
        return "not timed: only a correct kernel is"
    if result.measured.status is not Status.PASSED:
        return f"{result.measured.status} while it was timed: {result.measured.message}\n{result.measured.detail}"
    said = f"{result.verdict.decision}: {result.verdict.reason}" if result.verdict else ""
    return f"{decision.timings(result.measured)}\nAs a challenger it would end as {said}"


def to_json(result: Benched) -> str:
    """All of it."""
    return json.dumps(json.loads(records.to_json(result)), indent=2)


def _weighed(result: Benched, op: Op, settings: Settings) -> Benched:
    assert result.measured is not None
    if result.measured.status is not Status.PASSED:
        return result
    reason = weigh.fault(result.measured)
    thresholds = op.spec.thresholds(settings.decision)
    measurement = None if reason else weigh.weigh(result.measured, rungs_left=0)
    if least := least_inside(measurement, thresholds):
        measurement = weigh.within(result.measured, least, thresholds.outside_share, rungs_left=0) or measurement
    grave = ", ".join(f"{one.rule} in line {one.line}" for one in result.report.grave)
    verdict = decide(
        *(Status.PASSED, result.report.accepted, measurement, thresholds),
        unmeasured_reason=reason,
        rounds=settings.loop.rounds,
        objection=f"the audit establishes {grave}" if grave else "",
    )
    return Benched(result.file, result.sha256, result.report, result.measured, measurement, verdict)


def _export(op: Op) -> Callable[[Path, str, bytes], None]:
    def export(into: Path, name: str, data: bytes) -> None:
        lay_out({**op.workspace_files(), name: data}, into)

    return export
