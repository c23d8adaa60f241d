"""A false record cannot be built."""

from __future__ import annotations

import math

import pytest

from orchestrator.records import (
    CaseResult,
    Finding,
    Measurement,
    Report,
    Run,
    Status,
    WrongElement,
    from_json,
    to_json,
)  # fmt: skip

GOOD = CaseResult("a", {"M": 1}, "float32", 1.0, False, Status.PASSED)
BAD = CaseResult("b", {"M": 2}, "float32", 1.0, False, Status.WRONG_VALUES)
FINDING = Finding(Status.FALLBACK, "k.py:1", "x", "m", "a")


def test_a_pass_has_its_evidence() -> None:
    assert Report(Status.PASSED, "", cases=(GOOD,), expected_cases=1, nonce="n").passed


@pytest.mark.parametrize(
    "fields",
    [
        {"cases": (), "expected_cases": 0, "nonce": "n"},
        {"cases": (GOOD,), "expected_cases": 2, "nonce": "n"},
        {"cases": (GOOD, BAD), "expected_cases": 2, "nonce": "n"},
        {"cases": (GOOD,), "expected_cases": 1},
        {"cases": (GOOD,), "expected_cases": 1, "nonce": "n", "findings": (FINDING,)},
    ],
)
def test_a_pass_without_evidence_cannot_be_built(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="PASSED"):
        Report(Status.PASSED, "", **fields)  # type: ignore[arg-type]


def test_the_gravest_finding_heads_a_rejection() -> None:
    tampered = Finding(Status.TAMPERED, "ref.py", "", "edited", "")
    report = Report.rejected((FINDING, tampered))
    assert report.status is Status.TAMPERED and report.message.startswith("ref.py: edited (and 1 more)")


def test_a_measurement_cannot_beat_the_roofline() -> None:
    with pytest.raises(ValueError, match="roofline"):
        Measurement("b", 1.0, 1.1, "s", 1.0, 1.01, 0.01, 0)


def test_a_measurement_needs_a_pass() -> None:
    with pytest.raises(ValueError, match="without a passed attempt"):
        Run("r", "op", "b", "c", "t", "a", measurement=Measurement("b", 1.0, 1.1, "s", 1.0, 0.9, 0.01, 0))


def test_json_keeps_nan_and_infinity_and_refuses_the_unknown() -> None:
    element = WrongElement((0,), math.nan, math.inf)
    report = Report(Status.WRONG_VALUES, "", cases=(GOOD,), expected_cases=1)
    back = from_json(WrongElement, to_json(element))
    assert math.isnan(back.got) and back.want == math.inf
    assert from_json(Report, to_json(report)) == report
    with pytest.raises(ValueError, match="forged"):
        from_json(Report, to_json(report).replace('"message"', '"forged": 1, "message"'))
