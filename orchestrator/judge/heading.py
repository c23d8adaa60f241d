"""What a report is headed by: the gravest status among its cases, and one line that says how many and the first.

A pure function of the cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.records import CaseResult, Status

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


def headed(cases: Sequence[CaseResult], expected: int) -> tuple[Status, str, str]:
    """Status, message and detail. PASSED only where every expected case is there and passed."""
    failed = [case for case in cases if not case.passed]
    if not failed and len(cases) == expected:
        return Status.PASSED, f"{expected} of {expected} cases passed", ""
    counts = Counter(case.status for case in failed)
    status = min(counts, key=_GRAVEST.index)
    first = next(case for case in failed if case.status is status)
    ways = ", ".join(f"{count} {way}" for way, count in counts.most_common()) if len(counts) > 1 else ""
    unrun = expected - len(cases)
    verb = "could not be judged here" if status is Status.INFRASTRUCTURE else "failed"
    message = f"{len(failed)} of {expected} cases {verb}"
    message += (f" ({ways})" if ways else "") + (f", {unrun} were not run" if unrun else "")
    return status, f"{message}; {first.name}: {_summary(first)}", ""


def _summary(case: CaseResult) -> str:
    if case.max_abs is None or case.status is Status.LOW_PRECISION:
        return case.detail.splitlines()[0]
    return f"{case.wrong} of {case.elements} elements wrong, max_abs {case.max_abs:.3g}, max_rel {case.max_rel:.3g}"
