"""One case's result against the reference: values within the tolerance, then precision. All of it by the test file.

Owns how the test file's comparison becomes the figures of a CaseResult; what is compared and how closely is the test
file's own. Used for a candidate's results and for those of decoys, so that both are judged by the same measure.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from orchestrator.judge import places
from orchestrator.judge.results import several
from orchestrator.records import Status


def compared(test: ModuleType, case: Any, got: Any, want: Any, exact: Any) -> dict[str, Any]:
    """The comparison of the worst of the results, with the reference and, for precision, with the float64 one.

    Without `exact` precision is not asked.
    """
    pairs = list(zip(got, want, strict=True)) if isinstance(want, tuple) else [(got, want)]
    exacts = several(exact) if exact is not None else [None] * len(pairs)
    found = [(test.compare(one, other, case.dtype), one, other) for one, other in pairs]
    errors = [
        (0.0 if finer is None else test.precision(*pair, finer), pair[0])
        for pair, finer in zip(pairs, exacts, strict=True)
    ]
    precision, coarsest = max(errors, key=lambda pair: pair[0])
    comparison, got, want = max(found, key=lambda entry: entry[0].worst)
    wrong = comparison.wrong
    count = int(wrong.sum())
    passed = bool(comparison.passed) and not count
    figures = {
        "max_abs": comparison.max_abs,
        "max_rel": comparison.max_rel,
        "tolerance_ratio": comparison.worst,
        "precision": precision,
        "wrong": count,
        "elements": wrong.numel(),
    }
    if not passed:
        places_ = {"first_wrong": places.first_wrong(wrong, got, want), "wrong_in": places.where(wrong)}
        return figures | places_ | {"status": Status.WRONG_VALUES}
    if precision > test.PRECISION:
        detail = _imprecise(precision, test.PRECISION, integers=not coarsest.is_floating_point())
        return figures | {"status": Status.LOW_PRECISION, "detail": detail}
    return figures | {"status": Status.PASSED}


def _imprecise(precision: float, bound: float, *, integers: bool) -> str:
    if integers:
        return (
            f"within the tolerance, but an integer is half a step and {precision:.1f} thousandths of one away from "
            f"what it was rounded from, in float64 (at most {bound:g} thousandths): not rounded to the nearest, or "
            "less precise than float32 before"
        )
    return (
        f"within the tolerance, but the RMS error against float64 is {precision:.1f} times that of the float32 "
        f"reference (at most {bound:g}): some arithmetic is less precise than float32"
    )
