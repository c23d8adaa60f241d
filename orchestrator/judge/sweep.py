"""One job, from a kernel file to a Report.

Owns the order of things: start the candidate, import it, run every case of the committed test file against it, then
the cases drawn for this verdict, and say what happened. A verdict of PASSED is built only here, from cases compared
in this process.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator import source
from orchestrator.diagnosis import diagnose
from orchestrator.errors import JudgeError
from orchestrator.judge import large, scouts, testfile
from orchestrator.judge.candidate import Candidate, CandidateFailed, Innocent
from orchestrator.judge.checks.compiles import HOME, compiles
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.checks.global_state import global_state, unchanged
from orchestrator.judge.checks.registry import call_checks, series_checks
from orchestrator.judge.checks.series import Series, SeriesCheck
from orchestrator.judge.compare import compared
from orchestrator.judge.compilation import Ahead, Compiler
from orchestrator.judge.heading import headed
from orchestrator.judge.proxy import Proxy
from orchestrator.records import CaseResult, Compiled, Job, Judging, Report, SandboxPiece, Status

_SERIES_LEAST = 64  # elements of a case that the checks of a series are made on
_SERIES_ELEMENTS = {"cpu": 4096, "cuda": 1 << 20}
_OTHER_SEED = 0x5EED
_SCOUTED_ELEMENTS = 1 << 28
_TOLD_EACH = 8  # cases
_MOST_COMPILED = 150  # specializations that a report describes, a rule's own target's first


@dataclass
class _Progress:
    """What is known so far; becomes a Report at the end, however the job ends."""

    job: Job
    judging: Judging
    seed: int
    sandbox: tuple[SandboxPiece, ...] = ()
    expected: int = 0
    cases: list[CaseResult] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)
    begun: float = 0.0  # the cases
    printed: str = ""  # by processes after the first

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Seconds spent within count as that part."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - begun

    def within_limit(self) -> None:
        """Raises CandidateFailed where the cases take longer than they may."""
        if time.perf_counter() - self.begun > self.job.limits.total_s:
            raise CandidateFailed(Status.TIMEOUT, f"the sweep did not end within {self.job.limits.total_s:g} s")

    def report(self, status: Status, message: str, detail: str = "", output: str = "") -> Report:
        return Report(
            status=status,
            message=message,
            detail=detail,
            cases=tuple(self.cases),
            expected_cases=self.expected,
            diagnosis=diagnose(self.cases),
            device=self.judging.device,
            interpreted=self.judging.interpreted,
            seed=self.seed,
            nonce=self.job.nonce,
            sandbox=self.sandbox,
            versions=self.judging.versions,
            seconds={name: round(value, 4) for name, value in self.seconds.items()},
            output=output,
            compiled=tuple(sorted(self.compiled, key=lambda one: one.target != HOME)[:_MOST_COMPILED]),
            notes=(*((f"checks switched off: {', '.join(self.job.skip)}",) if self.job.skip else ()), *self.notes),
        )


@dataclass(frozen=True)
class Means:
    """What this machine judges with. `start` makes a candidate's process from the kernel's path, and buffers where they
    are not the usual ones; so do `scouts`."""

    judging: Judging
    start: Callable[..., Candidate]
    scouts: Sequence[scouts.Start] = ()
    compiled: bool = False  # the listed cases, by an earlier verdict on this file
    compiler: Compiler | None = None
    beside: bool = False  # there is a core on which to compile while the sweep goes on
    room: large.Room | None = None  # larger buffers, where there is a GPU


def judge(job: Job, means: Means) -> Report:
    """The verdict on the kernel in the job's folder.

    A candidate that was killed from outside, or whose process did not start, is given another one, once.
    """
    seed = job.seed if job.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
    try:
        return _judge(_Progress(job, means.judging, seed), means)
    except Innocent:
        try:
            return _judge(progress := _Progress(job, means.judging, seed), means)
        except Innocent as failed:
            return progress.report(failed.status, f"{failed.message}, twice (out of memory?)", failed.detail)


def _judge(progress: _Progress, means: Means) -> Report:
    job, begun = progress.job, time.perf_counter()
    call_checks(job.skip)  # a name that is no check's, before anything is started
    candidate = means.start(Path(job.folder) / job.kernel)
    try:
        progress.sandbox = candidate.pieces
        with progress.timed("start"):
            candidate.attach()
        with progress.timed("import"):
            _state_unchanged(job, candidate.load(), "importing the file")
        launched = _sweep(progress, candidate, means)
        verdict = headed(progress.cases, progress.expected)
        if verdict[0] is Status.PASSED and means.compiler is not None and compiles.__name__ not in job.skip:
            with progress.timed("compile"):
                results = means.compiler.compile(job, launched)
                progress.compiled = [one.compiled for one in results if one.compiled is not None]
                compiles(results, progress.notes)
    except Innocent:
        raise
    except CandidateFailed as failed:
        verdict = (failed.status, failed.message, failed.detail)
    finally:
        try:
            output = candidate.end().output
        finally:
            if means.room is not None:
                means.room.leave()
    progress.seconds["total"] = time.perf_counter() - begun
    return progress.report(*verdict, output=output + progress.printed)


def _sweep(progress: _Progress, candidate: Candidate, means: Means) -> object:
    """Every case, the listed and the drawn ones. Returns what the candidate's process says of its launches."""
    job, interpreted = progress.job, progress.judging.interpreted
    device, kernel = "cpu" if interpreted else "cuda", Path(job.folder) / job.kernel
    quick = interpreted if job.quick is None else job.quick
    proxy = Proxy(candidate, job, device, call_checks(job.skip))
    with testfile.loaded(Path(job.folder), proxy.as_module(kernel.stem, job.function)) as test:
        said = source.read(kernel.read_bytes(), job.kernel)
        text = said if isinstance(said, source.Source) else None
        listed, drawn = [*test.cases(quick), *test.telling()], _drawn(test, text, progress.seed, quick)
        unseen = _shapes(test, drawn if means.compiled else [*listed, *drawn], device) if means.scouts else []
        planned, last = [*listed, *drawn], large.cases(test, quick)
        progress.expected = len(planned) + len(last)
        any_order = text is not None and source.adds_atomically(text) and not job.repeatable
        with (
            scouts.ahead(means.scouts, kernel, unseen),
            _compiled_beside(progress, means) as beside,
            progress.timed("cases"),
            _forgotten(proxy),
        ):
            bench = _Bench(proxy, test, device, progress, means.room, any_order, beside)
            whole = _cases(progress, bench, planned)
        if not candidate.alive:
            return []
        final = candidate.final()
        _state_unchanged(job, final.get("state"), "the run")
        if whole and last:
            candidate.end()
            with progress.timed("cases"), _forgotten(proxy):
                _large_cases(progress, bench, means, last)
    if proxy.calls < sum(case.passed for case in progress.cases):
        raise JudgeError("the op's test file passed cases without calling the kernel")
    return final.get("specializations")


@contextmanager
def _compiled_beside(progress: _Progress, means: Means) -> Iterator[Ahead | None]:
    """What compiles launches while the sweep goes on, where there is a core for it."""
    if means.compiler is None or not means.beside or compiles.__name__ in progress.job.skip:
        yield None
        return
    beside = means.compiler.ahead(progress.job)
    try:
        yield beside
    finally:
        with progress.timed("compile"):
            beside.end()


@contextmanager
def _forgotten(proxy: Proxy) -> Iterator[None]:
    """The last call's tensors, afterwards: the test file and the proxy know each other, and such a ring would keep the
    gigabytes of a large case until Python looks for rings."""
    try:
        yield
    finally:
        proxy.last = None


def _drawn(test: ModuleType, text: source.Source | None, seed: int, quick: bool) -> list[Any]:
    """The cases drawn for this verdict: from the op's ranges, and at sizes that the file itself names."""
    drawn = list(test.holdouts(seed, quick))
    if text is not None and hasattr(test, "named"):
        drawn += test.named(seed, *source.integers(text), quick)
    return drawn


def _cases(progress: _Progress, bench: _Bench, planned: Sequence[Any]) -> bool:
    """All of them; on a few, chosen by the seed, the checks of a series. Whether there is more to be asked."""
    job, progress.begun = progress.job, time.perf_counter()
    closely = _chosen(planned, progress.seed, _SERIES_ELEMENTS[bench.device])
    for number, case in enumerate(planned):
        progress.within_limit()
        series = series_checks(job.skip) if number in closely else []
        once = number == min(closely)
        progress.cases.append(_case(bench, case, progress.seed + number, series, once=once))
        if bench.room is not None:
            bench.room.tidy(case)
        if not bench.proxy.alive or (job.first_failure and not progress.cases[-1].passed):
            return False
        if bench.beside is not None and number % _TOLD_EACH == 0 and progress.cases[-1].passed:
            bench.beside.take(bench.proxy.launched(bench.beside.taken))
    return True


def _large_cases(progress: _Progress, bench: _Bench, means: Means, planned: Sequence[Any]) -> None:
    """Each in a process of its own. No other may live: memory that it keeps would leave out the case."""
    for case in planned:
        progress.within_limit()
        with progress.timed("room"):
            lack = means.room.take(case) if means.room else "no GPU"
        if lack or means.room is None:
            progress.notes.append(large.left_out(case, lack))
            progress.expected -= 1
            continue
        seed = progress.seed + len(progress.cases)
        inputs = bench.test.make_inputs(case, bench.device, seed)
        with _started(progress, bench.proxy, partial(means.start, arenas=means.room.buffers(inputs))):
            del inputs  # made anew for the case
            progress.cases.append(_case(bench, case, seed, (), once=False))


@contextmanager
def _started(progress: _Progress, proxy: Proxy, start: scouts.Start) -> Iterator[None]:
    """Another process of the candidate, which calls are handed to."""
    candidate = start(proxy.kernel)
    try:
        candidate.attach()
        _state_unchanged(progress.job, candidate.load(), "importing the file")
        proxy.hand_to(candidate)
        yield
        if candidate.alive:
            _state_unchanged(progress.job, candidate.final().get("state"), "the run")
    finally:
        progress.printed += candidate.end().output


def _shapes(test: ModuleType, planned: Sequence[Any], device: str) -> list[scouts.Shapes]:
    """The calls of the planned cases, as far as compiling depends on them; without the largest."""
    few = [case for case in planned if math.prod(case.dims.values()) <= _SCOUTED_ELEMENTS]
    return [
        scouts.Shapes(
            {
                name: (tuple(tensor.shape), tensor.stride(), str(tensor.dtype).removeprefix("torch."))
                for name, tensor in test.make_inputs(case, device, 0).items()
            },
            case.parameters,
        )
        for case in few
    ]


def _state_unchanged(job: Job, differences: object, what: str) -> None:
    if global_state.__name__ not in job.skip:
        unchanged(differences, what)


def _chosen(planned: Sequence[Any], seed: int, elements: int) -> set[int]:
    """The cases to look at closely: for each dtype one of those that are neither tiny nor large.

    The first of them has rows that are no whole blocks: only there what lies behind an end can be touched.
    """
    draw = random.Random(seed)
    chosen: set[int] = set()
    for dtype in dict.fromkeys(case.dtype for case in planned):
        numbers = [number for number, case in enumerate(planned) if case.dtype == dtype]
        fit = [number for number in numbers if _SERIES_LEAST <= math.prod(planned[number].dims.values()) <= elements]
        uneven = [] if chosen else [number for number in fit if not _whole(planned[number])]
        chosen.add(draw.choice(uneven or fit or numbers))
    return chosen


def _whole(case: Any) -> bool:
    """Whether a power of two holds each row exactly."""
    size: int = list(case.dims.values())[-1]
    return size & (size - 1) == 0


@dataclass(frozen=True)
class _Bench:
    """What a case is run with."""

    proxy: Proxy
    test: ModuleType
    device: str
    progress: _Progress
    room: large.Room | None
    any_order: bool
    beside: Ahead | None


def _case(bench: _Bench, case: Any, seed: int, checks: Sequence[SeriesCheck], *, once: bool) -> CaseResult:
    common = {
        "name": case.name,
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "scale": case.scale,
        "holdout": case.holdout,
        "parameters": dict(case.parameters),
        "values": case.values,
        "seed": seed,
    }
    begun = time.perf_counter()
    try:
        inputs = bench.test.make_inputs(case, bench.device, seed)
        figures = (large.figures if large.is_large(case) else _compared)(bench.test, case, inputs)
        if figures["status"] is Status.PASSED and checks:
            _closely(bench, case, seed, checks, once)
    except Innocent:
        raise
    except CandidateFailed as failed:
        detail = failed.message + (f"\n{failed.detail}" if failed.detail else "")
        return CaseResult(**common, status=failed.status, detail=detail, seconds=_since(begun))
    return CaseResult(**common, **figures, seconds=_since(begun))


def _compared(test: ModuleType, case: Any, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    got, want = test.run(inputs, case.parameters)
    as_promised(got, want)
    return compared(test, case, got, want, test.exactly(inputs, case.parameters))


def _closely(bench: _Bench, case: Any, seed: int, checks: Sequence[SeriesCheck], once: bool) -> None:
    first = bench.proxy.last
    if first is None:
        raise JudgeError("the op's test file passed a case without calling the kernel")
    notes = bench.progress.notes
    series = Series(
        bench.proxy, bench.test, case, first, bench.device, seed ^ _OTHER_SEED, once, notes, bench.any_order
    )
    for check in checks:
        with bench.progress.timed(check.__name__):
            check(series)


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 5)
