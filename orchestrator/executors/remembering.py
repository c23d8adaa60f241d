"""An executor that does not judge the same kernel twice: what was judged under the same circumstances is the answer.

Wraps an executor and is one, so that the loop knows nothing of it. The same are: the kernel by its fingerprint, the op
to the last byte, this program's own code, versions, device, confinement and limits. The answer is the verdict as a
run's record in this workspace has it, with the judge's own evidence; a kernel that was convicted later, while it was
timed, is convicted. It says whose verdict it is. Never answered from the record: INFRASTRUCTURE, which is ours, and
TIMEOUT, which may have been the load of the day. What guard and policy say is asked anew each time: no job comes of
what they refuse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from orchestrator import kept
from orchestrator.config import Settings
from orchestrator.executors import Executor
from orchestrator.fingerprint import fingerprint
from orchestrator.measured import Measured, MeasureJob, SweepJob, Swept
from orchestrator.ops import Op
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Record, Report, Run, Status, from_json, to_json
from orchestrator.tree import write_whole

FINGERPRINT = "fingerprint.json"  # in an attempt's folder
_NEVER = (Status.INFRASTRUCTURE, Status.TIMEOUT)


@dataclass(frozen=True)
class Fingerprint(Record):
    """What was judged, and under which circumstances."""

    kernel: str
    circumstances: str


def remembering(executor: Executor, op: Op, settings: Settings, workspaces: Path) -> Executor:
    """The executor, wrapped where that is wanted. Who names a seed wants those values judged."""
    wanted = settings.loop.remember and settings.judge.seed is None
    return Remembering(executor, op, workspaces) if wanted else executor


class Remembering:
    """Judges what is new."""

    def __init__(self, executor: Executor, op: Op, workspaces: Path) -> None:
        self._executor = executor
        self._op = op
        self._runs = workspaces / "runs"

    async def start(self) -> Judging:
        """As the executor."""
        return await self._executor.start()

    async def judge(self, job: Job) -> Report:
        """The verdict of an earlier attempt with the same kernel, or a new one."""
        folder = Path(job.folder).parent
        try:
            kernel = fingerprint((Path(job.folder) / job.kernel).read_bytes())
        except (SyntaxError, ValueError):
            return await self._executor.judge(job)
        what = Fingerprint(kernel, circumstances(job, self._op, await self.start()))
        if (found := self._known(what, folder)) is not None:
            return found
        write_whole(folder / FINGERPRINT, to_json(what))
        return await self._executor.judge(job)

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        """As the executor."""
        return await self._executor.check_op(job)

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        """As the executor: times are of the day."""
        return await self._executor.measure(job, tell)

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        """As the executor."""
        return await self._executor.sweep(job, tell)

    async def close(self) -> None:
        """As the executor."""
        await self._executor.close()

    def _known(self, what: Fingerprint, own: Path) -> Report | None:
        """The newest verdict on the same in the record, whose folders no candidate can write."""
        places = [
            one for run in kept.runs_of(self._op.name, self._runs) for one in run.glob(f"attempts/*/{FINGERPRINT}")
        ]
        for place in sorted(places, key=lambda path: path.stat().st_mtime, reverse=True):
            if place.parent == own or not _says(place, what):
                continue
            run, number = place.parents[2].name, int(place.parent.name.split("-")[0])
            report = _recorded(self._runs / run / "run.json", number)
            if report is not None and report.status not in _NEVER:
                return _answered(report, f"{run}#{number}")
        return None


def _answered(report: Report, whose: str) -> Report:
    """The recorded verdict, which says of itself that it is one."""
    note = f"answered from the record of {whose}: the same kernel under the same circumstances, not run again"
    message = f"{report.message} (from the record of {whose})"
    return replace(report, message=message, notes=(note, *report.notes), seconds={})


def _says(place: Path, what: Fingerprint) -> bool:
    with suppress(OSError, ValidationError):
        return from_json(Fingerprint, place.read_bytes()) == what
    return False


def _recorded(record: Path, number: int) -> Report | None:
    """That attempt's verdict as the run's record has it; None where the run has not come so far."""
    with suppress(OSError, ValidationError):
        attempts = from_json(Run, record.read_bytes()).attempts
        return attempts[number - 1].report if number <= len(attempts) else None
    return None


def circumstances(job: Job, op: Op, judging: Judging) -> str:
    """Everything beside the kernel that a verdict depends on, hashed."""
    told = {
        "op": {name: hashlib.sha256(data).hexdigest() for name, data in op.workspace_files().items()},
        "spec": op.spec.model_dump_json(),
        "program": _program(),
        "device": judging.device,
        "versions": judging.versions,
        "sandbox": [piece.name for piece in judging.sandbox if piece.held],
        "asked": [job.quick, list(job.skip), job.first_failure, asdict(job.limits)],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@cache
def _program() -> str:
    """This program's own code: another judge is another circumstance."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".j2") and "corpus" not in path.parts:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
