"""What a candidate launched in Triton's interpreter, compiled for real targets: the judge's side of `ahead`.

Owns the conversation with the compiling process, which is confined like a candidate because it imports the kernel
file, and the cache. What the results mean is `checks.compiles`'.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from pydantic import ValidationError

from orchestrator.errors import JudgeError
from orchestrator.judge import ahead, channel
from orchestrator.judge.ahead import CompileResult, Specialization, Work
from orchestrator.judge.candidate import CandidateFailed, confinement_of, how_it_ended
from orchestrator.judge.checks.compiles import HOME
from orchestrator.judge.forkserver import Child, Exit, ForkServer
from orchestrator.records import Job, Limits, Status
from orchestrator.tree import remove_tree

_MOST = 200  # specializations, as many as `interpreter.recording` keeps
_MOST_S = 20.0  # beyond one specialization of each kernel; what is not compiled by then is said in a note
_SLACK_S = 20
_ANSWER_BYTES = 16 << 20
_CORES = os.cpu_count() or 1
_LAST_S = 1.0  # for what is being compiled when a sweep ends

Started = Callable[[Child], None]


class Compiler:
    """Compiles for one judge, and remembers."""

    def __init__(self, server: ForkServer, folder: Path, triton_version: str) -> None:
        self._server = server
        self._folder = folder
        self._version = triton_version

    def compile(self, job: Job, launched: object) -> list[CompileResult]:
        """Everything launched, for every target. `launched` is what the candidate's process says of its launches."""
        kernel = Path(job.folder) / job.kernel
        work = [(one, target) for one in _specializations(launched) for target in ahead.TARGETS]
        cache = ahead.Cache(self._folder, kernel.read_bytes(), self._version)
        remembered = [(item, cache.known(*item)) for item in work]
        results = [result for _, result in remembered if result is not None]
        decisive, rest = _sorted(remembered)
        for unknown, limit_s in ((decisive, job.limits.compile_s), (rest, min(_MOST_S, job.limits.compile_s))):
            compiled = self._ask(job, kernel, unknown, limit_s)
            for item, result in zip(unknown, compiled, strict=True):
                cache.keep(*item, result)
            results += compiled
        return results

    def ahead(self, job: Job) -> Ahead:
        """What takes a sweep's launches while it goes on. To be ended."""
        return Ahead(self, job)

    def remember(self, job: Job, work: Sequence[Work], started: Started) -> None:
        """Compile these, one at a time, to be found by `compile` later."""
        kernel = Path(job.folder) / job.kernel
        cache = ahead.Cache(self._folder, kernel.read_bytes(), self._version)
        unknown = [item for item in work if cache.known(*item) is None]
        for item, result in zip(unknown, self._ask(job, kernel, unknown, _MOST_S, 1, started), strict=True):
            cache.keep(*item, result)

    def _ask(
        self,
        job: Job,
        kernel: Path,
        work: Sequence[Work],
        limit_s: float,
        workers: int = _CORES,
        started: Started = lambda child: None,
    ) -> list[CompileResult]:
        if not work:
            return []
        # A folder of its own: it runs beside the candidate, unwatched, and must have nothing to tell it by.
        scratch = kernel.parent / "compiling"
        scratch.mkdir(exist_ok=True)
        child = self._server.spawn({"kernel": str(kernel)}, confinement_of(kernel, job.limits, scratch=scratch))
        started(child)
        try:
            texts = [one.to_json() for one, _ in work]
            request: channel.Message = {
                "work": [[text, target] for text, (_, target) in zip(texts, work, strict=True)],
                "limit_s": limit_s,
                "workers": max(1, min(workers, job.limits.processes // 3)),  # each starts an assembler
            }
            channel.send(child.sock, request)
            answer = channel.receive(child.sock, limit_s + _SLACK_S, _ANSWER_BYTES)
            return _results(answer, len(work))
        except (channel.ChannelClosed, channel.ChannelTimeout, channel.ChannelViolation) as silent:
            raise _ended(child.kill("silent"), job.limits) from silent
        finally:
            child.close()
            remove_tree(scratch)


class Ahead:
    """Compiles what a sweep has launched so far, beside it. Nothing is heard of what fails here: what is not remembered
    when the sweep is over is compiled then."""

    def __init__(self, compiler: Compiler, job: Job) -> None:
        self.taken = 0  # specializations, in the order of their first launch
        self._compiler, self._job = compiler, job
        self._child: Child | None = None
        self._waiting: SimpleQueue[Specialization | None] = SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compiling", daemon=True)
        self._thread.start()

    def take(self, launched: object) -> None:
        """More of what the candidate's process says of its launches."""
        more = _specializations(launched)
        self.taken += len(more)
        if self.taken > _MOST:
            raise _forged("its list of launches is malformed")
        for one in more:
            self._waiting.put(one)

    def end(self) -> None:
        """Soon: what is being compiled may be done with, or is killed."""
        self._ended.set()
        self._waiting.put(None)
        self._thread.join(_LAST_S)
        if self._thread.is_alive() and self._child is not None:
            self._child.interrupt()
        self._thread.join()

    def _run(self) -> None:
        while (one := self._waiting.get()) is not None and not self._ended.is_set():
            with suppress(CandidateFailed, JudgeError):
                self._compiler.remember(self._job, [(one, target) for target in ahead.TARGETS], self._started)

    def _started(self, child: Child) -> None:
        self._child = child


def _sorted(remembered: Sequence[tuple[Work, CompileResult | None]]) -> tuple[list[Work], list[Work]]:
    """What is to be compiled: of each kernel the first for HOME, without which there is no verdict, and the rest."""
    done = {one.kernel for (one, target), result in remembered if result is not None and target == HOME}
    decisive: list[Work] = []
    rest: list[Work] = []
    for (one, target), result in remembered:
        if result is None:
            first = target == HOME and one.kernel not in done
            (decisive if first else rest).append((one, target))
            done |= {one.kernel} if first else set()
    return decisive, rest


def _specializations(launched: object) -> list[Specialization]:
    if not isinstance(launched, list) or len(launched) > _MOST:
        raise _forged("its list of launches is malformed")
    try:
        return [ahead.specialization_from_json(text) for text in launched]
    except ValidationError:
        raise _forged("its list of launches is malformed") from None


def _results(answer: channel.Message, expected: int) -> list[CompileResult]:
    texts = answer.get("results")
    if not isinstance(texts, list) or len(texts) != expected:
        raise _forged("the results of compiling are malformed")
    try:
        return [ahead.result_from_json(text) for text in texts]
    except ValidationError:
        raise _forged("the results of compiling are malformed") from None


def _ended(exit_: Exit, limits: Limits) -> CandidateFailed:
    """The process that compiles survives its compilers, so the file ended it, or one of our limits did."""
    how = how_it_ended(exit_, limits)
    if exit_.reason in ("exited", "signal"):
        message = f"importing the file where Triton compiles: the process {how}"
        return CandidateFailed(Status.COMPILE_ERROR, message, exit_.output[-2000:])
    return CandidateFailed(Status.INFRASTRUCTURE, f"cannot be judged without a GPU: compiling {how}")


def _forged(how: str) -> CandidateFailed:
    return CandidateFailed(Status.TAMPERED, f"the candidate interfered with the judge: {how}")
