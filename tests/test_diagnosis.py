"""Each pattern is named where it holds and not where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.diagnosis import diagnose
from orchestrator.records import CaseResult, Status


def case(passed: bool, n: int = 128, m: int = 4, dtype: str = "float32", scale: float = 1.0, **more: Any) -> CaseResult:
    status = Status.PASSED if passed else Status.WRONG_VALUES
    defaults: dict[str, Any] = {"max_rel": 0.5, "tolerance_ratio": 50.0, "holdout": False, "status": status}
    return CaseResult(f"{dtype}-{m}x{n}", {"M": m, "N": n}, dtype, scale, **(defaults | more))


SIZES = (1, 7, 127, 128, 255, 1024)
DTYPES = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize(
    ("told", "fails", "more"),
    [
        ("Only dtype float16 fails", lambda n, d, s: d == "float16", {}),
        ("Only dtype float16 fails, and not in every case", lambda n, d, s: d == "float16" and n > 1, {}),
        ("Only scale 1000 fails", lambda n, d, s: s == 1000, {}),
        ("Only N that is no power of two fails", lambda n, d, s: n & (n - 1) != 0, {}),
        ("Every case with N >= 255 fails", lambda n, d, s: n >= 255, {}),
        ("Only half precision is wrong", lambda n, d, s: d != "float32", {"max_rel": 0.02}),
        ("within 2 times its tolerance", lambda n, d, s: n == 255, {"tolerance_ratio": 1.5}),
        ("only in column 6", lambda n, d, s: n == 7, {"wrong_in": "only in column 6 of 7"}),
    ],
)
def test_patterns(told: str, fails: Any, more: dict[str, Any]) -> None:
    results = [
        case(False, n=n, dtype=d, scale=s, **more) if fails(n, d, s) else case(True, n=n, dtype=d, scale=s)
        for n in SIZES for d in DTYPES for s in (1e-3, 1.0, 1e3)
    ]  # fmt: skip
    sentences = diagnose(results)
    assert any(told in sentence for sentence in sentences), sentences
    everything = [case(False, n=n, dtype=d, scale=s) for n in SIZES for d in DTYPES for s in (1e-3, 1.0, 1e3)]
    assert not any(told in sentence for sentence in diagnose(everything))


def test_a_small_error_in_half_precision_is_no_missing_promotion() -> None:
    results = [case(True)] + [case(False, dtype="float16", max_rel=3e-3)]
    assert not any("half precision" in sentence for sentence in diagnose(results))


def test_a_large_miss_is_not_near() -> None:
    assert not any("times its tolerance" in sentence for sentence in diagnose([case(False, tolerance_ratio=2.5)]))


def test_only_held_out_cases() -> None:
    sentences = diagnose([case(True), case(True, scale=1e3), case(False, n=100, holdout=True)])
    assert any("drawn" in sentence for sentence in sentences)
    assert not any("scale" in sentence for sentence in sentences)


def test_an_ignored_parameter_is_the_only_thing_said() -> None:
    results = [case(True, n=n, parameters={"eps": 1e-6}) for n in SIZES]
    results.append(case(False, n=100, holdout=True, parameters={"eps": 0.1}))
    (sentence,) = diagnose(results)
    assert "another eps than 1e-06" in sentence


def test_two_odd_sizes_among_many_passing_ones_are_no_pattern() -> None:
    results = [case(True, n=n) for n in (3, 5, 7, 9, 11, 128)] + [case(False, n=13)]
    assert not any("power of two" in sentence for sentence in diagnose(results))


def test_one_failing_case_is_no_pattern() -> None:
    assert diagnose([case(True), case(True, dtype="float16"), case(False, n=128, scale=1e3)]) == ()


def test_what_could_not_be_judged_is_no_pattern() -> None:
    assert diagnose([case(True), *[case(False, n=n, status=Status.INFRASTRUCTURE) for n in SIZES]]) == ()


def test_nothing_failed() -> None:
    assert diagnose([case(True)]) == ()


def test_faults_that_part_along_dtypes_are_told_by_dtype() -> None:
    results = [
        case(d == "float32" and n in (1, 128, 1024) or d == "float16" and s < 1e3, n=n, dtype=d, scale=s)
        for n in SIZES for d in DTYPES for s in (1e-3, 1.0, 1e3)
    ]  # fmt: skip
    sentences = diagnose(results)
    assert any(told.startswith("float32: Only N that is no power of two") for told in sentences), sentences
    assert "float16: Only scale 1000 fails." in sentences
    assert "bfloat16: every case fails." in sentences


def test_a_scale_at_which_nothing_passes_is_told_beside_other_faults() -> None:
    results = [
        case(d == "float32" and n != 7 or s < 1e3 and n in (1, 128), n=n, dtype=d, scale=s)
        for n in SIZES for d in ("float32", "float16") for s in (1e-3, 1.0, 1e3)
    ]  # fmt: skip
    assert "float16: Every case with scale 1000 fails, and some with other scales." in diagnose(results)


def test_each_way_of_failing_is_told_apart() -> None:
    results = [case(n in (1, 128), n=n) for n in SIZES[:-1]]
    results += [case(False, n=131072, status=Status.RUNTIME_ERROR, max_rel=None, tolerance_ratio=None)]
    sentences = diagnose(results)
    assert any(told.startswith("WRONG_VALUES: Only N that is no power of two") for told in sentences), sentences
    assert any(told.startswith("RUNTIME_ERROR: Every case with N >= 131072") for told in sentences)
