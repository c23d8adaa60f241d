"""Judge jobs on this machine: one long-lived judge process, started again when it dies.

Owns the judge's process and the deadline of a job as seen from outside. The judge gets an environment without
secrets: its candidates inherit nothing worth reading.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO

from orchestrator.errors import JudgeError
from orchestrator.judge import channel
from orchestrator.measured import Measured, MeasureJob, SweepJob, Swept
from orchestrator.records import Job, Judging, OpCheck, OpCheckJob, Record, Report, from_json, to_json
from orchestrator.text import printable
from orchestrator.tree import os_errors

_START_S = 120  # importing torch from a cold disk
_CHECK_S = 600  # all decoys of an op
_SLACK_S = 60  # for the reference and the judge's own work, beyond what the candidate may take
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CC")
_KEPT_FOR_GCC = ("LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH")  # Triton compiles its launchers
_KEPT_OF_NVIDIA = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE")
_KEPT_PREFIXES = ("TRITON_", "HIP_", "ROCR_", "HSA_", "OPENBLAS_", "OMP_")  # their names differ by release
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_REPORT_LIMIT_BYTES = 64 << 20
_OTHER_JOB = "the judge answered another job than the one it was given"


@contextlib.asynccontextmanager
async def opened(device: str, log: Path) -> AsyncIterator[LocalExecutor]:
    """A judge on this machine; it starts when it is first asked, and is ended whatever happens."""
    executor = LocalExecutor(device, log)
    try:
        yield executor
    finally:
        await executor.close()


class LocalExecutor:
    """One judge process on this machine. `device` is auto, cpu or gpu; the judge's own output goes to `log`.

    `gpu` names the one GPU that the judge sees, as CUDA_VISIBLE_DEVICES does; '' leaves that to the environment.
    `judges` is how many share the machine's cores.
    """

    def __init__(self, device: str, log: Path, gpu: str = "", judges: int = 1) -> None:
        self._device = device
        self._log = log
        self._gpu = gpu
        self._judges = judges
        self._process: asyncio.subprocess.Process | None = None
        self._sock: socket.socket | None = None
        self._judging: Judging | None = None

    @property
    def pid(self) -> int | None:
        """The judge's process, while there is one."""
        return None if self._process is None else self._process.pid

    async def start(self) -> Judging:
        """Start the judge, unless it runs; returns where verdicts will be made."""
        if self._judging is not None and self._process is not None and self._process.returncode is None:
            return self._judging
        await self.close()
        ours, theirs = socket.socketpair()
        with theirs, self._open_log() as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "orchestrator.judge.server"),
                *(str(theirs.fileno()), self._device, str(self._judges)),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=judge_environment() | ({"CUDA_VISIBLE_DEVICES": self._gpu} if self._gpu else {}),
                cwd="/",
                start_new_session=True,
            )
        self._sock = ours
        answer = await self._receive(_START_S)
        self._judging = from_json(Judging, str(answer["judging"]))
        return self._judging

    async def judge(self, job: Job) -> Report:
        """The verdict. A judge that dies is started again and asked once more; a second death is an error."""
        for last_try in (False, True):
            await self.start()
            try:
                return await self._ask(job)
            except _JudgeGone as gone:
                if last_try:
                    raise JudgeError(f"the judge died twice on one attempt: {gone}") from gone
        raise AssertionError("unreachable")

    async def check_op(self, job: OpCheckJob) -> OpCheck:
        """What becomes of the op's decoys. They are ours: a judge that dies of them is not asked again."""
        await self.start()
        await self._send({"op": to_json(job, indent=None)})
        return from_json(OpCheck, str((await self._receive(_CHECK_S))["check"]))

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        """How fast a passed kernel is. A judge that dies meanwhile is an error: half a measurement is none."""
        silence = 2 * (job.limits.call_s + job.limits.compile_s) + _SLACK_S
        measured = from_json(Measured, await self._told("measure", job, "measured", silence, tell))
        if measured.nonce != job.nonce:
            raise JudgeError(_OTHER_JOB)
        return measured

    async def sweep(self, job: SweepJob, tell: Callable[[str], None]) -> Swept:
        """What other launch parameters would do. Says nothing for as long as one shape takes."""
        limits = job.kernel.limits
        silence = job.total_s + limits.call_s + limits.compile_s + _SLACK_S
        swept = from_json(Swept, await self._told("sweep", job, "swept", silence, tell))
        if swept.nonce != job.kernel.nonce:
            raise JudgeError(_OTHER_JOB)
        return swept

    async def _told(self, what: str, job: Record, answered: str, silence: float, tell: Callable[[str], None]) -> str:
        """The answer to a job that says how far it is. A judge that dies meanwhile is an error."""
        await self.start()
        await self._send({what: to_json(job, indent=None)})
        while "progress" in (answer := await self._receive(silence)):
            tell(str(answer["progress"]))
        return str(answer[answered])

    async def close(self) -> None:
        """End the judge; its fork server and any candidate die with it."""
        process, self._process = self._process, None
        sock, self._sock = self._sock, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if sock is not None:  # after the judge's death, which ends a thread that still listens
            sock.close()

    async def _ask(self, job: Job) -> Report:
        await self._send({"job": to_json(job, indent=None)})
        answer = await self._receive(job.limits.total_s + job.limits.compile_s + _SLACK_S)
        report = from_json(Report, str(answer["report"]))
        if report.nonce != job.nonce:
            raise JudgeError(_OTHER_JOB)
        return report

    async def _send(self, message: channel.Message) -> None:
        assert self._sock is not None
        try:
            channel.send(self._sock, message)
        except channel.ChannelClosed as error:
            await self.close()
            raise _JudgeGone(str(error)) from error

    async def _receive(self, seconds: float) -> channel.Message:
        assert self._sock is not None
        receiving = asyncio.to_thread(channel.receive, self._sock, seconds, _REPORT_LIMIT_BYTES)
        try:
            answer = await receiving
        except channel.ChannelTimeout:
            await self.close()
            raise JudgeError(f"the judge said nothing for {seconds:g} s; its output is in {self._log}") from None
        except (channel.ChannelClosed, channel.ChannelViolation) as error:
            await self.close()
            raise _JudgeGone(f"the judge's process ended: {self._last_line() or error}; see {self._log}") from error
        if "error" in answer:
            raise JudgeError(f"{printable(str(answer['error']), 400)}; see {self._log}")
        return answer

    def _last_line(self) -> str:
        """What the judge wrote last: of a traceback, the exception."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n") if self._log.is_file() else []
        return printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))

    def _open_log(self) -> IO[bytes]:
        with os_errors(f"write {self._log}"):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            return self._log.open("ab")


class _JudgeGone(JudgeError):
    """The judge's process ended, or its channel broke. It is closed by then: the next job starts another."""


def judge_environment() -> dict[str, str]:
    """The variables that the judge's process gets: what Python, Triton and the GPU need, and no secret."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in (*_KEPT, *_KEPT_FOR_GCC, *_KEPT_OF_NVIDIA)
        or (name.startswith(_KEPT_PREFIXES) and not names_a_secret(name))
    }
    here = str(Path(__file__).resolve().parents[2])  # a checkout need not be installed
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    return kept | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def names_a_secret(variable: str) -> bool:
    """Whether a variable's name says that it holds a key, a password or the like."""
    return any(word in variable.upper() for word in _SECRETS)
