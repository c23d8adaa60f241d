"""The judge's process: `python -m orchestrator.judge.server FD DEVICE JUDGES`.

Says once where it judges (a Judging), then answers each Job on the socket FD with a Report, each OpCheckJob with an
OpCheck, each MeasureJob with a Measured and each SweepJob with a Swept, until the other end closes. DEVICE is auto, cpu
or gpu, JUDGES how many share this machine. The order at the start matters: whether Triton interprets is decided before
triton is imported, and the fork servers are forked before CUDA is touched, because a process forked after that cannot
use it. There is one fork server for verdicts, one for compiling without a GPU, and on a GPU one for each scout and each
process that may be timed at once: a warden answers for everything beneath it, so it holds one candidate at a time.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import gpu
from orchestrator.errors import JudgeError, OrchestratorError
from orchestrator.judge import channel
from orchestrator.measured import MeasureJob, SweepJob
from orchestrator.records import Job, Judging, Limits, OpCheck, OpCheckJob, Report, from_json, to_json

if TYPE_CHECKING:
    from orchestrator.judge.forkserver import ForkServer
    from orchestrator.judge.large import Room
    from orchestrator.judge.memory import Arena
    from orchestrator.judge.timing.session import Session

_CACHE = Path("~/.cache/orchestrator").expanduser()  # no candidate can write there


def main() -> None:
    """Serve one orchestrator."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        judge = _Judge(sys.argv[2], int(sys.argv[3]))
    except OrchestratorError as error:
        channel.send(sock, {"error": str(error)})
        return
    channel.send(sock, {"judging": to_json(judge.judging, indent=None)})
    while True:
        try:
            message = channel.receive(sock)
        except channel.ChannelClosed:
            return
        channel.send(sock, judge.answer(message, lambda text: channel.send(sock, {"progress": text})))
        if not judge.works():
            sys.exit("the judge's GPU context is lost")


class _Judge:
    def __init__(self, device: str, judges: int) -> None:
        self._judges = judges
        self._interpreted = _interpreted(device)
        os.environ.pop("TRITON_INTERPRET", None)  # it is ours to set, and inherited it would stop compiling
        import torch

        from orchestrator.judge import ahead, sandbox, scouts
        from orchestrator.judge.forkserver import ForkServer

        sandbox.make_undumpable()
        compiling: ForkServer | None = None
        if self._interpreted:
            compiling = ForkServer.start(ahead.serve, ahead.prepare)  # before triton learns that it interprets
            os.environ["TRITON_INTERPRET"] = "1"
        import triton.language  # noqa: F401 - in memory before the fork servers are forked: a candidate starts warm

        from orchestrator.judge import drafts, interpreter, witness, worker

        if self._interpreted:
            interpreter.repair()  # once, for all candidates, which inherit it
            torch.set_num_threads(1)  # the tensors are small, and threads that wait for each other cost more
        else:
            _load_triton()
        witness.prepare()

        self._server = ForkServer.start(drafts.main)
        self._scouts = [ForkServer.start(worker.main) for _ in range(0 if self._interpreted else scouts.count(judges))]
        self._timed = [] if self._interpreted else _servers_for_timing()
        self._session: Session | None = None
        self._room: Room | None = None
        confinement = sandbox.probe(device=not self._interpreted)  # forks, so before CUDA too
        if not self._interpreted and not torch.cuda.is_available():
            raise JudgeError(
                "the driver shows a GPU that this torch cannot use; install a GPU build or give --device cpu"
            )
        self._arenas: tuple[Arena, Arena] | None = None
        self._compiling = compiling
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

    def answer(self, message: channel.Message, tell: Callable[[str], None]) -> channel.Message:
        """What is asked for, or what went wrong with us. A bug of ours must not end the judge silently."""
        try:
            if "op" in message:
                return {"check": to_json(self._check(from_json(OpCheckJob, str(message["op"]))), indent=None)}
            if "measure" in message:
                measured = self._measurements().measure(from_json(MeasureJob, str(message["measure"])), tell)
                return {"measured": to_json(measured, indent=None)}
            if "sweep" in message:
                swept = self._measurements().sweep(from_json(SweepJob, str(message["sweep"])), tell)
                return {"swept": to_json(swept, indent=None)}
            return {"report": to_json(self._report(from_json(Job, str(message["job"]))), indent=None)}
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            # Neither can be mended in this process: the executor starts another judge and asks again.
            if not all(server.alive for server in self._servers):
                sys.exit("a fork server died")
            if not self.works():
                sys.exit("the judge's GPU context is lost")
            known = isinstance(error, JudgeError)
            return {"error": str(error) if known else f"the judge failed: {type(error).__name__}: {error}"}

    def _measurements(self) -> Session:
        """What times kernels: made once, so that the card's ceilings are measured once."""
        from orchestrator.judge.timing.session import Session

        if self._interpreted:
            raise JudgeError("there is nothing to measure on: times in Triton's interpreter mean nothing")
        self._session = self._session or Session(self._timed, self.judging, _CACHE / "baselines")
        return self._session

    @property
    def _servers(self) -> list[ForkServer]:
        return [self._server, *self._scouts, *self._timed, *([] if self._compiling is None else [self._compiling])]

    def works(self) -> bool:
        """Whether this process can still use its GPU. Asked after each job, for what a candidate did to the device
        must never be charged to the next one: the executor starts another judge."""
        if self._interpreted:
            return True
        import torch

        try:
            numbers = torch.arange(1 << 12, device="cuda")
            return int((numbers * 2 - numbers).sum()) == (1 << 12) * ((1 << 12) - 1) // 2
        except RuntimeError:
            return False

    def _report(self, job: Job) -> Report:
        from orchestrator.judge import large
        from orchestrator.judge.candidate import Candidate
        from orchestrator.judge.compilation import Compiler
        from orchestrator.judge.surroundings import TRITON_CACHE
        from orchestrator.judge.sweep import Means, judge
        from orchestrator.judge.warm_cache import WarmCache

        device = "cpu" if self._interpreted else "cuda"
        shared = self._shared(job.limits)

        def start(server: ForkServer, kernel: Path, arenas: tuple[Arena, Arena] = shared) -> Candidate:
            return Candidate(server, kernel, job.function, device, arenas, job.limits)

        compiler = None
        if self._compiling is not None:
            compiler = Compiler(self._compiling, _CACHE / "compiled", self.judging.versions["triton"])
        means = Means(
            self.judging,
            partial(start, self._server),
            compiler=compiler,
            beside=(os.cpu_count() or 1) >= 2 * self._judges,
        )
        if self._interpreted:
            return judge(job, means)
        self._room = self._room or large.Room(self._judges)
        means = replace(means, room=self._room)
        kernel, cache = Path(job.folder) / job.kernel, Path(job.folder) / "scratch" / TRITON_CACHE
        kept = WarmCache(_CACHE / "launched", {**self.judging.versions, "device": self.judging.device})
        warm = kept.give(kernel, cache)
        # Where the listed cases are compiled, the scouts compile those that were drawn; where the first failure is
        # likely to end it, nothing compiled ahead would be used.
        if not job.first_failure:
            means = replace(means, scouts=[partial(start, server) for server in self._scouts], compiled=warm)
        report = judge(job, means)
        if report.passed and not job.skip:
            kept.take(kernel, cache)
        return report

    def _check(self, job: OpCheckJob) -> OpCheck:
        from orchestrator.judge import drafts, opcheck

        device = "cpu" if self._interpreted else "cuda"
        if job.confined:
            return drafts.check(self._server, job, device, self.judging.device)
        return opcheck.check(job, device, self.judging.device)

    def _shared(self, limits: Limits) -> tuple[Arena, Arena]:
        """The two buffers, kept from job to job: their content is poisoned or overwritten before each use."""
        from orchestrator.judge.memory import DeviceArena, HostArena

        if self._arenas is None:
            kind = HostArena if self._interpreted else DeviceArena
            self._arenas = (kind(limits.arena_mb << 20), kind(limits.arena_mb << 20))
        return self._arenas


def _load_triton() -> None:
    """What each candidate would else do at its first launch: compile the C part of Triton's driver, import Gluon, hash
    Triton itself for the key of its cache. It does not start the GPU."""
    import torch
    import triton
    from triton.backends import backends
    from triton.runtime import cache

    triton.runtime.driver.set_active(backends["amd" if torch.version.hip else "nvidia"].driver())
    with suppress(ImportError):
        import triton.experimental.gluon  # noqa: F401
    getattr(cache, "triton_key", _nothing)()  # it remembers the answer


def _nothing() -> None:
    """Where this Triton keeps its key elsewhere, the first launch makes it."""


def _servers_for_timing() -> list[ForkServer]:
    from orchestrator.judge.forkserver import ForkServer
    from orchestrator.judge.timing import worker
    from orchestrator.judge.timing.seats import MOST_CONTENDERS

    return [ForkServer.start(worker.main) for _ in range(MOST_CONTENDERS)]


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
