"""A judge for tests of what is done with verdicts: it has them from a table, by the kernel's bytes, and judges nothing.

What a kernel "takes" is in the table too, so that a batch without a GPU comes to MERGE and REWORK. It says of itself
that it is scripted wherever a device is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.measured import AS_WRITTEN, Launch, LaunchTimings, Measured, MeasureJob, SweepJob, Swept
from orchestrator.records import (
    CaseResult,
    DecoyResult,
    Fate,
    Job,
    Judging,
    OpCheck,
    OpCheckJob,
    Report,
    Status,
)
from tests.measurements import measured, shape

DEVICE = "a scripted judge"
_CASE = CaseResult(
    *("a", {"M": 1}, "float32", 1.0, False, Status.PASSED),
    **{"max_abs": 1e-3, "max_rel": 1e-3, "tolerance_ratio": 0.2, "precision": 0.9},
)


@dataclass(frozen=True)
class Script:
    """What a kernel's verdict is and, where it passes, how long it takes, also launched otherwise than it says;
    torch.compile takes 50. At further shapes it may take another time. Of three cases so many may be wrong.
    """

    status: Status
    us: float = 40.0
    launched: dict[Launch, float] = field(default_factory=dict)
    elsewhere: tuple[float, ...] = ()
    wrong: int = 0  # of the cases of a kernel that fails; 0: it fails before any


def key(kernel: bytes) -> str:
    """How a kernel is found in the table."""
    return hashlib.sha256(kernel.strip()).hexdigest()


def _failed(script: Script) -> Report:
    if not script.wrong:
        return Report(script.status, "as scripted", device=DEVICE)
    wrong = replace(_CASE, status=script.status)
    cases = (*[wrong] * script.wrong, *[_CASE] * (3 - script.wrong))
    return Report(script.status, f"{script.wrong} of 3 cases wrong", cases=cases, expected_cases=3, device=DEVICE)


class ScriptedJudge:
    """An executor with its verdicts from a table; each job that it gets is a line of `log`."""

    def __init__(self, scripts: dict[str, Script], log: Path) -> None:
        self._scripts = scripts
        self._log = log

    async def start(self) -> Judging:
        return Judging(DEVICE, False, {"torch": "none", "triton": "none"}, ())

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        return OpCheck(job.op, DEVICE, (DecoyResult("one", "", Fate.REJECTED, "a", Status.WRONG_VALUES),), 0.0)

    async def judge(self, job: Job) -> Report:
        self._note(f"judge {job.folder}")
        script = self._scripts[key((Path(job.folder) / job.kernel).read_bytes())]
        if script.status is not Status.PASSED:
            return _failed(script)
        return Report(
            Status.PASSED, "1 of 1 cases passed", cases=(_CASE,), expected_cases=1, nonce=job.nonce, device=DEVICE
        )

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        self._note(f"measure {job.folder}")
        tell("as scripted")
        script = self._scripts[key((Path(job.folder) / job.kernel).read_bytes())]
        best = self._scripts[key((Path(job.folder) / job.best).read_bytes())].us if job.best else None
        others = [shape(us, dims=(4096, 4096 + number), best=best) for number, us in enumerate(script.elsewhere, 1)]
        return replace(measured(shape(script.us, best=best), *others), nonce=job.nonce)

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        kernel = job.kernel
        self._note(f"sweep {kernel.folder}")
        script = self._scripts[key((Path(kernel.folder) / kernel.kernel).read_bytes())]
        times = {AS_WRITTEN: script.us, **{launch: script.launched.get(launch, script.us) for launch in job.launches}}
        ways = tuple(LaunchTimings(launch, (us,)) for launch, us in times.items())
        return Swept(kernel.nonce, (shape(script.us).name,), ways, expected_shapes=1)

    async def close(self) -> None: ...

    def _note(self, line: str) -> None:
        with self._log.open("a") as file:
            file.write(line + "\n")
