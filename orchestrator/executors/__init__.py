"""The contract of whatever runs judge jobs. One way a file; nothing outside it knows where a job runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from orchestrator.measured import Measured, MeasureJob, SweepJob, Swept
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Report


class Executor(Protocol):
    """Runs judge jobs somewhere."""

    async def start(self) -> Judging:
        """Get ready; returns where verdicts will be made. Raises JudgeError."""
        ...

    async def judge(self, job: Job) -> Report:
        """The verdict on one attempt. Raises JudgeError when there can be none and the candidate is not the reason."""
        ...

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        """Whether the op's own checker rejects every decoy. Raises JudgeError."""

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        """How fast a passed kernel is; `tell` hears of the progress. Raises JudgeError, also where there is no GPU."""
        ...

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        """What other launch parameters would do to a passed kernel. Raises JudgeError, also where there is no GPU."""
        ...

    async def close(self) -> None:
        """End everything that was started. Safe to call twice."""
        ...
