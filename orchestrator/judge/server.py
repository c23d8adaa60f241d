"""The judge's process: `python -m orchestrator.judge.server FD DEVICE`.

Says once where it judges (a Judging), then answers each Job on the socket FD with a Report, and each OpCheckJob with an
OpCheck, until the other end closes. DEVICE is auto, cpu or gpu. The order at the start matters: whether Triton
interprets is decided before triton is imported, and the fork server is forked before CUDA is touched, because a
process forked after that cannot use it.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import gpu
from orchestrator.errors import JudgeError, OrchestratorError
from orchestrator.judge import channel
from orchestrator.records import Job, Judging, Limits, OpCheck, OpCheckJob, Report, from_json, to_json

if TYPE_CHECKING:
    from orchestrator.judge.memory import Arena


def main() -> None:
    """Serve one orchestrator."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        judge = _Judge(sys.argv[2])
    except OrchestratorError as error:
        channel.send(sock, {"error": str(error)})
        return
    channel.send(sock, {"judging": to_json(judge.judging, indent=None)})
    while True:
        try:
            message = channel.receive(sock)
        except channel.ChannelClosed:
            return
        channel.send(sock, judge.answer(message))


class _Judge:
    def __init__(self, device: str) -> None:
        self._interpreted = _interpreted(device)
        if self._interpreted:
            os.environ["TRITON_INTERPRET"] = "1"
        import torch
        import triton.language  # noqa: F401 - both in memory before the fork server is forked: a candidate starts warm

        from orchestrator.judge import interpreter, sandbox, witness, worker
        from orchestrator.judge.forkserver import ForkServer

        if self._interpreted:
            interpreter.repair()  # once, for all candidates, which inherit it
        witness.prepare()

        sandbox.make_undumpable()
        self._server = ForkServer.start(worker.main)
        confinement = sandbox.probe(device=not self._interpreted)  # forks, so before CUDA too
        if not self._interpreted and not torch.cuda.is_available():
            raise JudgeError(
                "the driver shows a GPU that this torch cannot use; install a GPU build or give --device cpu"
            )
        self._arenas: tuple[Arena, Arena] | None = None
        self.judging = Judging(
            device="CPU, Triton's interpreter" if self._interpreted else torch.cuda.get_device_name(),
            interpreted=self._interpreted,
            versions={
                "python": platform.python_version(),
                "torch": torch.__version__,
                "triton": triton.__version__,
                **({} if self._interpreted else gpu.versions()),
            },
            sandbox=confinement,
        )

    def answer(self, message: channel.Message) -> channel.Message:
        """The report on a job, or what went wrong with us. A bug of ours must not end the judge silently."""
        try:
            if "op" in message:
                return {"check": to_json(self._check(from_json(OpCheckJob, str(message["op"]))), indent=None)}
            return {"report": to_json(self._report(from_json(Job, str(message["job"]))), indent=None)}
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            if not self._server.alive:
                # A fork server cannot be forked anew once CUDA runs: the executor starts another judge and asks again.
                sys.exit("the fork server died")
            return {"error": f"the judge failed: {type(error).__name__}: {error}"}

    def _report(self, job: Job) -> Report:
        from orchestrator.judge.candidate import Candidate
        from orchestrator.judge.sweep import judge

        device = "cpu" if self._interpreted else "cuda"
        arenas = self._shared(job.limits)

        def start(kernel: Path) -> Candidate:
            return Candidate(self._server, kernel, job.function, device, arenas, job.limits)

        return judge(job, self.judging, start)

    def _check(self, job: OpCheckJob) -> OpCheck:
        from orchestrator.judge.opcheck import check

        return check(job, "cpu" if self._interpreted else "cuda", self.judging.device)

    def _shared(self, limits: Limits) -> tuple[Arena, Arena]:
        """The two buffers, kept from job to job: their content is poisoned or overwritten before each use."""
        from orchestrator.judge.memory import DeviceArena, HostArena

        if self._arenas is None:
            kind = HostArena if self._interpreted else DeviceArena
            self._arenas = (kind(limits.arena_mb << 20), kind(limits.arena_mb << 20))
        return self._arenas


def _interpreted(device: str) -> bool:
    """Whether verdicts come from Triton's interpreter. Asks the driver, because asking torch would initialise CUDA."""
    if device == "cpu":
        return True
    present = gpu.present()
    if device == "gpu" and not present:
        raise JudgeError("--device gpu: no GPU is visible here; give --device cpu or run on a machine with one")
    return not present


if __name__ == "__main__":
    main()
