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
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.diagnosis import diagnose
from orchestrator.errors import JudgeError
from orchestrator.judge import testfile
from orchestrator.judge.candidate import Candidate, CandidateFailed, KilledFromOutside
from orchestrator.judge.checks import CallCheck
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.checks.global_state import global_state, unchanged
from orchestrator.judge.checks.registry import call_checks, series_checks
from orchestrator.judge.checks.series import Series, SeriesCheck
from orchestrator.judge.compare import compared
from orchestrator.judge.proxy import Proxy
from orchestrator.records import CaseResult, Job, Judging, Report, SandboxPiece, Status

_SERIES_LEAST = 64  # elements of a case that the checks of a series are made on
_SERIES_ELEMENTS = {"cpu": 4096, "cuda": 1 << 20}
_OTHER_SEED = 0x5EED

# The witness has not been tried on a GPU yet, and what it said there could refuse an honest kernel. So it is not
# asked there, and every report says that these checks are off.
_NEED_A_WITNESS = (
    *("host_operations", "launches", "overruns", "own_storage", "global_state"),
    "muted_launches",
)

# When cases fail in several ways the report is headed by the first of these that occurs.
_GRAVEST = (
    Status.TAMPERED,
    Status.CRASHED,
    Status.TIMEOUT,
    Status.COMPILE_ERROR,
    Status.RUNTIME_ERROR,
    Status.WRONG_SHAPE,
    Status.WRONG_DTYPE,
    Status.FALLBACK,
    Status.FORBIDDEN,
    Status.INPUT_MUTATED,
    Status.OUT_OF_BOUNDS,
    Status.WRONG_VALUES,
    Status.LOW_PRECISION,
    Status.NONDETERMINISTIC,
    Status.INFRASTRUCTURE,
)


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
            notes=(f"checks switched off: {', '.join(self.job.skip)}",) if self.job.skip else (),
        )


def judge(job: Job, judging: Judging, start: Callable[[Path], Candidate]) -> Report:
    """The verdict on the kernel in the job's folder. `start` makes the candidate's process from the kernel's path.

    A candidate that was killed from outside is given another process, once: the kill need not be its fault.
    """
    seed = job.seed if job.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
    if not judging.interpreted:
        job = replace(job, skip=tuple(sorted({*job.skip, *_NEED_A_WITNESS})))
    try:
        return _judge(_Progress(job, judging, seed), start)
    except KilledFromOutside:
        try:
            return _judge(progress := _Progress(job, judging, seed), start)
        except KilledFromOutside as failed:
            return progress.report(failed.status, f"{failed.message}, twice (out of memory?)", failed.detail)


def _judge(progress: _Progress, start: Callable[[Path], Candidate]) -> Report:
    job, begun = progress.job, time.perf_counter()
    checks = call_checks(job.skip)
    candidate = start(Path(job.folder) / job.kernel)
    try:
        progress.sandbox = candidate.pieces
        progress.seconds["start"] = time.perf_counter() - begun
        _state_unchanged(job, candidate.load(), "importing the file")
        progress.seconds["import"] = time.perf_counter() - begun - progress.seconds["start"]
        _sweep(progress, candidate, checks, begun)
        verdict = _verdict(progress)
    except KilledFromOutside:
        raise
    except CandidateFailed as failed:
        verdict = (failed.status, failed.message, failed.detail)
    finally:
        output = candidate.end().output
    progress.seconds["total"] = time.perf_counter() - begun
    return progress.report(*verdict, output=output)


def _sweep(progress: _Progress, candidate: Candidate, checks: Sequence[CallCheck], begun: float) -> None:
    """Every case, the listed and the drawn ones; on a few of them, chosen by the seed, the checks of a series."""
    job, interpreted = progress.job, progress.judging.interpreted
    device = "cpu" if interpreted else "cuda"
    quick = interpreted if job.quick is None else job.quick
    proxy = Proxy(candidate, job, device, checks)
    with testfile.loaded(Path(job.folder), proxy.as_module(Path(job.kernel).stem, job.function)) as test:
        planned = [*test.cases(quick), *test.telling(), *test.holdouts(progress.seed, quick)]
        progress.expected = len(planned)
        closely = _chosen(planned, progress.seed, _SERIES_ELEMENTS[device])
        for number, case in enumerate(planned):
            if time.perf_counter() - begun > job.limits.total_s:
                raise CandidateFailed(Status.TIMEOUT, f"the sweep did not end within {job.limits.total_s:g} s")
            series = series_checks(job.skip) if number in closely else []
            progress.cases.append(_case(_Bench(proxy, test, device, progress.seed + number), case, series))
            if not candidate.alive:
                break
    progress.seconds["cases"] = sum(case.seconds for case in progress.cases)
    if candidate.alive:
        _state_unchanged(job, candidate.final_state(), "the run")
        if proxy.calls < sum(case.passed for case in progress.cases):
            raise JudgeError("the op's test file passed cases without calling the kernel")


def _state_unchanged(job: Job, differences: object, what: str) -> None:
    if global_state.__name__ not in job.skip:
        unchanged(differences, what)


def _chosen(planned: list[Any], seed: int, elements: int) -> set[int]:
    """The cases to look at closely: for each dtype one of those that are neither tiny nor large."""
    draw = random.Random(seed)
    chosen = set()
    for dtype in dict.fromkeys(case.dtype for case in planned):
        numbers = [number for number, case in enumerate(planned) if case.dtype == dtype]
        fit = [number for number in numbers if _SERIES_LEAST <= math.prod(planned[number].dims.values()) <= elements]
        chosen.add(draw.choice(fit or numbers))
    return chosen


@dataclass(frozen=True)
class _Bench:
    """What a case is run with."""

    proxy: Proxy
    test: ModuleType
    device: str
    seed: int


def _case(bench: _Bench, case: Any, checks: Sequence[SeriesCheck]) -> CaseResult:
    common = {
        "name": case.name,
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "scale": case.scale,
        "holdout": case.holdout,
        "parameters": dict(case.parameters),
        "values": case.values,
        "seed": bench.seed,
    }
    begun = time.perf_counter()
    try:
        inputs = bench.test.make_inputs(case, bench.device, bench.seed)
        got, want = bench.test.run(inputs, case.parameters)
        as_promised(got, want)
        figures = compared(bench.test, case, got, want, bench.test.exactly(inputs, case.parameters))
        if figures["status"] is Status.PASSED and checks:
            _closely(bench, case, checks)
    except KilledFromOutside:
        raise
    except CandidateFailed as failed:
        detail = failed.message + (f"\n{failed.detail}" if failed.detail else "")
        return CaseResult(**common, status=failed.status, detail=detail, seconds=_since(begun))
    return CaseResult(**common, **figures, seconds=_since(begun))


def _closely(bench: _Bench, case: Any, checks: Sequence[SeriesCheck]) -> None:
    first = bench.proxy.last
    if first is None:
        raise JudgeError("the op's test file passed a case without calling the kernel")
    series = Series(bench.proxy, bench.test, case, first, bench.device, bench.seed ^ _OTHER_SEED)
    for check in checks:
        check(series)


def _verdict(progress: _Progress) -> tuple[Status, str, str]:
    failed = [case for case in progress.cases if not case.passed]
    if not failed and len(progress.cases) == progress.expected:
        return Status.PASSED, f"{progress.expected} of {progress.expected} cases passed", ""
    counts = Counter(case.status for case in failed)
    status = min(counts, key=_GRAVEST.index)
    first = next(case for case in failed if case.status is status)
    ways = ", ".join(f"{count} {way}" for way, count in counts.most_common()) if len(counts) > 1 else ""
    unrun = progress.expected - len(progress.cases)
    verb = "could not be judged here" if status is Status.INFRASTRUCTURE else "failed"
    message = f"{len(failed)} of {progress.expected} cases {verb}"
    message += (f" ({ways})" if ways else "") + (f", {unrun} were not run" if unrun else "")
    return status, f"{message}; {first.name}: {_summary(first)}", ""


def _summary(case: CaseResult) -> str:
    if case.max_abs is None or case.status is Status.LOW_PRECISION:
        return case.detail.splitlines()[0]
    return f"{case.wrong} of {case.elements} elements wrong, max_abs {case.max_abs:.3g}, max_rel {case.max_rel:.3g}"


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 5)
