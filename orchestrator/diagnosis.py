"""What the failing cases of a sweep have in common, in words for whoever must repair the kernel.

Pure: case results in, sentences out. Classifies; it never loosens anything, and a near miss is a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.records import CaseResult, Status

HALF = ("float16", "bfloat16")
NEAR = 2.0  # times the tolerance


def diagnose(cases: Sequence[CaseResult]) -> tuple[str, ...]:
    """The patterns over the failing cases, one way of failing at a time; by dtype where a way has none in common."""
    failed = [case for case in cases if not case.passed and case.status is not Status.INFRASTRUCTURE]
    passed = [case for case in cases if case.passed]
    statuses = sorted({case.status for case in failed})
    sentences: list[str] = []
    for status in statuses:
        group = [case for case in failed if case.status is status]
        found = _patterns(group, passed) or _by_dtype(group, passed)
        sentences += [f"{status}: {sentence}" if len(statuses) > 1 else sentence for sentence in found]
    return tuple(sentences)


def _by_dtype(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> list[str]:
    """What each dtype's failing cases have in common; several faults at once often part along dtypes."""
    sentences = []
    for dtype in dict.fromkeys(case.dtype for case in failed):
        mine, others = ([case for case in some if case.dtype == dtype] for some in (failed, passed))
        if not others and len(mine) > 1:
            sentences.append(f"{dtype}: every case fails.")
        found = _patterns(mine, others) or [_whole_scale(mine, others)]
        sentences += [f"{dtype}: {sentence}" for sentence in found if sentence and others]
    return sentences


def _whole_scale(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    """A scale at which nothing passes, where others have passing cases: overflow or underflow, beside another fault."""
    lost = {case.scale for case in failed} - {case.scale for case in passed}
    if len(lost) != 1 or len(failed) == 1:
        return ""
    return f"Every case with scale {lost.pop():g} fails, and some with other scales."


def _patterns(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> list[str]:
    """What holds for all of `failed`, which ended in one way, and for none of `passed` where that makes the pattern."""
    if sentence := _parameter_ignored(failed, passed):
        return [sentence]
    wrong = failed if failed[0].status is Status.WRONG_VALUES else []
    found = (
        _only_one_kind(failed, passed, "dtype", lambda case: case.dtype),
        _only_one_kind(failed, passed, "scale", lambda case: f"{case.scale:g}"),
        _only_holdouts(failed, passed),
        _not_powers_of_two(failed, passed),
        _beyond_a_size(failed, passed),
        _promotion(wrong, passed),
        _near(wrong),
        _place(wrong),
    )
    return [sentence for sentence in found if sentence]


def _only_one_kind(
    failed: Sequence[CaseResult], passed: Sequence[CaseResult], what: str, key: Callable[[CaseResult], str]
) -> str:
    kinds = {key(case) for case in failed}
    if len(kinds) != 1 or not {key(case) for case in passed} - kinds:
        return ""
    if len(failed) == 1 or all(case.holdout for case in failed):
        return ""  # one case always has one kind, and a held-out one's was drawn
    value = kinds.pop()
    also = any(key(case) == value for case in passed)
    return f"Only {what} {value} fails{', and not in every case' if also else ''}."


def _parameter_ignored(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    """A parameter that in no failing case has the value it has in every passing one."""
    for name in failed[0].parameters:
        usual = {case.parameters.get(name) for case in passed}
        if len(usual) == 1 and not usual & {case.parameters.get(name) for case in failed}:
            return f"Only cases with another {name} than {usual.pop()} fail: the kernel seems to ignore the parameter."
    return ""


def _only_holdouts(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    if not all(case.holdout for case in failed) or all(case.holdout for case in passed):
        return ""
    return "Only cases that were drawn for this verdict fail so: look at sizes and parameters beyond the listed ones."


def _not_powers_of_two(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    for dim in _dims(failed):
        odd = [case for case in passed if not _power_of_two(case.dims[dim])]
        if any(_power_of_two(case.dims[dim]) for case in failed) or len(odd) > len(failed) or len(odd) == len(passed):
            continue
        return (
            f"Only {dim} that is no power of two fails: padded lanes reach the result. "
            f"Look for a missing mask or `other`, or a divisor that is the block size instead of {dim}."
        )
    return ""


def _beyond_a_size(failed: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    for dim in _dims(failed):
        smallest = min(case.dims[dim] for case in failed)
        largest = max((case.dims[dim] for case in passed), default=smallest)
        if smallest > largest > 1:
            return f"Every case with {dim} >= {smallest} fails and every case with {dim} <= {largest} passes."
    return ""


def _promotion(wrong: Sequence[CaseResult], passed: Sequence[CaseResult]) -> str:
    large = [case for case in wrong if case.dtype in HALF and (case.max_rel or 0) >= 1e-2]
    if not large or any(case.dtype not in HALF for case in wrong) or not any(c.dtype not in HALF for c in passed):
        return ""
    return (
        "Only half precision is wrong, by 1e-2 and more: arithmetic seems to run in the input's dtype. "
        "Cast to float32 right after each load."
    )


def _near(wrong: Sequence[CaseResult]) -> str:
    ratios = [case.tolerance_ratio for case in wrong if case.tolerance_ratio is not None]
    if not ratios or max(ratios) > NEAR:
        return ""
    return (
        f"Every wrong case is within {NEAR:g} times its tolerance (worst {max(ratios):.2f}). The tolerance stands; "
        "look for a rounding too many (an intermediate cast, a sum in the wrong order). A person may judge this one."
    )


def _place(wrong: Sequence[CaseResult]) -> str:
    places = {case.wrong_in for case in wrong}
    if len(places) == 1 and len(wrong) > 1 and not places & {"", "all elements"}:
        return f"In every wrong case the wrong elements are {places.pop()}."
    return ""


def _dims(cases: Sequence[CaseResult]) -> list[str]:
    """The dims that all these cases have, the last (fastest) one first: it is the usual suspect."""
    return [dim for dim in reversed(cases[0].dims) if all(dim in case.dims for case in cases)]


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
