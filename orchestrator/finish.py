"""What becomes of a run after it ended: measured on a machine that can, or adopted by a person.

Owns finding the run and what must hold before it is taken up again. Measuring, deciding and recording are the loop's
own; nothing here decides by other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import kept, past
from orchestrator.attempt import judge_kernel
from orchestrator.config import Settings
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.measured import Measured
from orchestrator.measuring import MEASURED, started
from orchestrator.ops import Op
from orchestrator.recorder import MEASUREMENTS, Recorder
from orchestrator.records import Decision, Judging, Run, Status, Verdict, from_json
from orchestrator.settle import conclude, weighed
from orchestrator.text import printable
from orchestrator.tree import os_errors
from orchestrator.watch import Watch
from orchestrator.workspace import RunBranch, Workspace


@dataclass(frozen=True)
class Ended:
    """A run of earlier, with its branch and the op as it was and is."""

    run: Run
    branch: RunBranch
    op: Op
    folder: Path

    def measured(self, attempt: int) -> Measured | None:
        """The newest measurement of that attempt that came to something."""
        found = None
        with os_errors(f"read the measurements in {self.folder}"):
            for one in sorted((self.folder / MEASUREMENTS).glob(f"*/{MEASURED}")):
                measured = from_json(Measured, one.read_bytes())
                if kept.against(one.parent).attempt == attempt and measured.status is Status.PASSED:
                    found = measured
        return found


def find(run_id: str, workspaces: Path, load: Callable[[str], Op]) -> Ended:
    """The run of that id. Raises UsageError where there is none, none of it passed, or the op has changed since."""
    found = past.find(run_id, workspaces)
    run = found.run
    if not any(attempt.report.passed for attempt in run.attempts):
        raise UsageError(f"no attempt of {run.id} passed, so there is no kernel; start a new run")
    op = load(run.op)
    branch = Workspace.open(workspaces, run.op).open_run(run.id)
    if dict(branch.files) != op.workspace_files():
        raise UsageError(f"the op {run.op} has changed since {run.id}; start a new run")
    return Ended(run, branch, op, found.folder)


async def measure(ended: Ended, executor: Executor, settings: Settings, watch: Watch) -> Run:
    """Judge the best kernel of a run again, on this machine's GPU, measure it and decide.

    Only of a run that is not decided: UNMEASURED, or ended by a failure of ours.
    """
    run = ended.run
    if run.verdict is not None and run.verdict.decision is not Decision.UNMEASURED and not run.error:
        raise UsageError(f"{run.id} ended in {run.verdict.decision}; only a run that is UNMEASURED can be measured")
    if run.best is None:
        raise UsageError(f"no attempt of {run.id} was accepted, so there is nothing to measure; start a new run")
    judging = await started(executor, settings, ended.op)
    recorder = Recorder.reopen(ended.folder, ended.branch, run, ended.op, judging, watch)
    with recorder.recording():
        recorder.rejudged(
            await judge_kernel(
                *(recorder.best_kernel(), ended.op, ended.branch.export, executor, settings.judge),
                folder=recorder.new_folder("judged-again"),
            )
        )
        done = tuple(dict.fromkeys(attempt.stage for attempt in run.attempts))
        conclude(recorder, await weighed(ended.op, executor, settings, recorder, judging, done))
    return recorder.run


def adopt(ended: Ended, reason: str, watch: Watch) -> Run:
    """Merge the best kernel of a run, or the last that passed and was not accepted, because a person says so, and
    record that it was a person.
    """
    if not reason.strip():
        raise UsageError("--reason is empty: say why this kernel is adopted; it goes into DECISION.md")
    best = ended.run.best or [attempt.number for attempt in ended.run.attempts if attempt.report.passed][-1]
    run, report = replace(ended.run, best=best), ended.run.attempts[best - 1].report
    judging = Judging(report.device, report.interpreted, report.versions, report.sandbox)
    recorder = Recorder.reopen(ended.folder, ended.branch, run, ended.op, judging, watch)
    recorder.recall(ended.measured(best))
    was = f"{run.verdict.decision}: {run.verdict.reason}" if run.verdict else "undecided"
    with recorder.recording():
        recorder.remark(f"Before a person adopted it, the decision was {was}")
        if objection := recorder.objection():
            recorder.remark(f"It was adopted although {objection}")
        conclude(recorder, Verdict(Decision.MERGE, f"Adopted by a person: {printable(reason.strip(), 300)}"))
    return recorder.run
