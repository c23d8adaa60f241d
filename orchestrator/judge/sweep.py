"""One job, from a kernel file to a Report.

Owns the order of things: start the candidate, import it, run every case of the committed test file against it, then
the cases drawn for this verdict, and say what happened. A verdict of PASSED is built only here, from cases compared
in this process.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.diagnosis import diagnose
from orchestrator.errors import JudgeError
from orchestrator.judge import places, testfile
from orchestrator.judge.candidate import Candidate, CandidateFailed
from orchestrator.judge.checks.contract import as_promised
from orchestrator.judge.proxy import Proxy
from orchestrator.records import CaseResult, Job, Judging, Report, SandboxPiece, Status

# When cases fail in several ways the report is headed by the first of these that occurs.
_GRAVEST = (
    Status.TAMPERED,
    Status.CRASHED,
    Status.TIMEOUT,
    Status.COMPILE_ERROR,
    Status.RUNTIME_ERROR,
    Status.WRONG_SHAPE,
    Status.WRONG_DTYPE,
    Status.INPUT_MUTATED,
    Status.WRONG_VALUES,
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
        )


def judge(job: Job, judging: Judging, start: Callable[[Path], Candidate]) -> Report:
    """The verdict on the kernel in the job's folder. `start` makes the candidate's process from the kernel's path."""
    seed = job.seed if job.seed is not None else int.from_bytes(os.urandom(4), "big") >> 1
    progress = _Progress(job, judging, seed)
    begun = time.perf_counter()
    candidate = None
    try:
        candidate = start(Path(job.folder) / job.kernel)
        progress.sandbox = candidate.pieces
        progress.seconds["start"] = time.perf_counter() - begun
        candidate.load()
        progress.seconds["import"] = time.perf_counter() - begun - progress.seconds["start"]
        _sweep(progress, candidate, begun)
        failure = None
    except CandidateFailed as failed:
        failure = failed
    output = candidate.end().output if candidate is not None else ""
    progress.seconds["total"] = time.perf_counter() - begun
    if failure is not None:
        return progress.report(failure.status, failure.message, failure.detail, output)
    return progress.report(*_verdict(progress), output=output)


def _sweep(progress: _Progress, candidate: Candidate, begun: float) -> None:
    job, interpreted = progress.job, progress.judging.interpreted
    device = "cpu" if interpreted else "cuda"
    quick = interpreted if job.quick is None else job.quick
    proxy = Proxy(candidate, job, device)
    with testfile.loaded(Path(job.folder), proxy.as_module(Path(job.kernel).stem, job.function)) as test:
        planned = [*test.cases(quick), *test.holdouts(progress.seed, quick)]
        progress.expected = len(planned)
        for number, case in enumerate(planned):
            if time.perf_counter() - begun > job.limits.total_s:
                raise CandidateFailed(Status.TIMEOUT, f"the sweep did not end within {job.limits.total_s:g} s")
            progress.cases.append(_case(test, case, device, progress.seed + number))
            if not candidate.alive:
                break
    progress.seconds["cases"] = sum(case.seconds for case in progress.cases)
    if candidate.alive and proxy.calls < sum(case.passed for case in progress.cases):
        raise JudgeError("the op's test file passed cases without calling the kernel")


def _case(test: ModuleType, case: Any, device: str, seed: int) -> CaseResult:
    common = {
        "name": case.name,
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "scale": case.scale,
        "holdout": case.holdout,
        "parameters": dict(case.parameters),
    }
    begun = time.perf_counter()
    try:
        got, want = test.run(case, device, seed)
        as_promised(got, want)
    except CandidateFailed as failed:
        detail = failed.message + (f"\n{failed.detail}" if failed.detail else "")
        return CaseResult(**common, status=failed.status, detail=detail, seconds=_since(begun))
    return CaseResult(**common, **_compared(test, case, got, want), seconds=_since(begun))


def _compared(test: ModuleType, case: Any, got: Any, want: Any) -> dict[str, Any]:
    """The comparison of the worst of the results."""
    results = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    compared = [(test.compare(one, other, case.dtype), one, other) for one, other in results]
    comparison, got, want = max(compared, key=lambda entry: entry[0].worst)
    wrong = comparison.wrong
    passed = bool(comparison.passed) and not bool(wrong.any())
    return {
        "status": Status.PASSED if passed else Status.WRONG_VALUES,
        "max_abs": comparison.max_abs,
        "max_rel": comparison.max_rel,
        "tolerance_ratio": comparison.worst,
        "wrong": int(wrong.sum()),
        "elements": wrong.numel(),
        "first_wrong": () if passed else places.first_wrong(wrong, got, want),
        "wrong_in": "" if passed else places.where(wrong),
    }


def _verdict(progress: _Progress) -> tuple[Status, str]:
    failed = [case for case in progress.cases if not case.passed]
    if not failed and len(progress.cases) == progress.expected:
        return Status.PASSED, f"{progress.expected} of {progress.expected} cases passed"
    counts = Counter(case.status for case in failed)
    status = min(counts, key=_GRAVEST.index)
    first = next(case for case in failed if case.status is status)
    ways = ", ".join(f"{count} {way}" for way, count in counts.most_common()) if len(counts) > 1 else ""
    unrun = progress.expected - len(progress.cases)
    message = f"{len(failed)} of {progress.expected} cases failed"
    message += (f" ({ways})" if ways else "") + (f", {unrun} were not run" if unrun else "")
    return status, f"{message}; {first.name}: {_summary(first)}"


def _summary(case: CaseResult) -> str:
    if case.status is not Status.WRONG_VALUES:
        return case.detail.splitlines()[0]
    return f"{case.wrong} of {case.elements} elements wrong, max_abs {case.max_abs:.3g}, max_rel {case.max_rel:.3g}"


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 5)
