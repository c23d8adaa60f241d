"""The rung without a model: other launch parameters for the best kernel so far, timed, and the winner written down.

Owns what the judge is asked and what is kept of it. What wins is a proposal like a model's: judged, and measured
against the best so far. Where there is none, the record says why.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator import launching, reply
from orchestrator.agents import Request
from orchestrator.attempt import Export
from orchestrator.config import Settings
from orchestrator.executors import Executor
from orchestrator.launching import Stays
from orchestrator.measured import Launch, SweepJob, Swept
from orchestrator.measuring import Rivals, job_of
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.records import Reply, Usage, from_json, to_json
from orchestrator.tree import os_errors, remove_tree, write_whole

NAME = "launch-sweep"
SWEPT = "swept.json"  # in the sweep's folder; whole or not there


class Sweeper:
    """Proposes one kernel: the best so far, launched as the sweep says."""

    name = NAME

    def __init__(self, text: str) -> None:
        self._text = text

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        return Reply(self._text, NAME, Usage(latency_s=0.0, requests=0), agent=NAME)


async def relaunch(op: Op, executor: Executor, settings: Settings, recorder: Recorder) -> Sweeper | None:
    """Sweep the launch parameters of the best kernel; None where nothing is to be proposed, and the record says why."""
    kernel, name = recorder.best_kernel(), op.spec.kernel_name
    try:
        ways = launching.ways(kernel, name)
        swept = await _swept(
            *(kernel, ways, op, recorder.branch.export, executor, settings, recorder.new_folder("sweeps")),
            tell=recorder.measuring,
        )
        recorder.swept(swept)
        if swept.fault:
            raise Stays(swept.fault)
        best = launching.chosen(swept, op.spec.thresholds(settings.decision).margin_floor)
        if best is None:
            raise Stays(f"as written it keeps up with all {len(ways)} ways that were timed")
        code = launching.rewritten(kernel, name, best).decode()
    except Stays as reason:
        recorder.remark(f"The launch parameters of attempt {recorder.run.best} stay: {reason}")
        return None
    return Sweeper(reply.wrapped(f"The kernel so far, launched with {best}.", code, name))


async def _swept(
    kernel: bytes,
    ways: tuple[Launch, ...],
    op: Op,
    export: Export,
    executor: Executor,
    settings: Settings,
    folder: Path,
    tell: Callable[[str], None],
) -> Swept:
    """What the judge says; what a killed run has of it is not asked again."""
    if (folder / SWEPT).is_file():
        with os_errors(f"read {folder}"):
            return from_json(Swept, (folder / SWEPT).read_bytes())
    remove_tree(folder / "job")  # of a sweep that was cut short
    export(folder / "job", op.spec.kernel_name, kernel)
    job = job_of(op, settings, folder / "job", Rivals())
    swept = await executor.sweep(SweepJob(job, ways, settings.measure.sweep_s), tell)
    write_whole(folder / SWEPT, to_json(swept))
    return swept
