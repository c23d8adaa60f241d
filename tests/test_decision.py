"""DECISION.md of a run that was measured: what it must hold for a pull request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import checklist, decision, weigh
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.records import (
    Attempt,
    CaseResult,
    Compiled,
    Decision,
    Judging,
    Measurement,
    Report,
    Run,
    Status,
    Usage,
    Verdict,
)
from tests.measurements import measured, shape

CASE = CaseResult(
    *("float16-M1", {"M": 1, "N": 7}, "float16", 1.0, False, Status.PASSED),
    **{"max_abs": 1e-3, "max_rel": 1e-3, "tolerance_ratio": 0.2, "precision": 0.9},
)
REPORT = Report(Status.PASSED, "1 of 1 cases passed", cases=(CASE,), expected_cases=1, nonce="n", seed=3)
JUDGING = Judging("NVIDIA H200", False, {"torch": "2.11.0", "triton": "3.6.0", "driver": "580.1"}, ())


def rendered(op: Op, found: Measured, verdict: Decision = Decision.MERGE) -> str:
    attempt = Attempt(1, "correct", 1, "recorded", "model", "0" * 64, REPORT, Usage(1.0), "c" * 40)
    measurement: Measurement = weigh.weigh(found, rungs_left=0)
    run = Run(
        *("rmsnorm-1", "rmsnorm", "run/rmsnorm-1", "b" * 40, "2026-01-01", "recorded"),
        attempts=(attempt,),
        best=1,
        measurement=measurement,
        verdict=Verdict(verdict, "Because of the figures."),
    )
    return decision.render(run, op, JUDGING, attempt, found)


def test_it_holds_what_a_reviewer_asks_for(rmsnorm: Op) -> None:
    shown = replace(shape(77, dims=(512, 65536)), curve=True)
    text = rendered(rmsnorm, measured(shape(40), shape(3.0, compiled=3.0, dims=(1, 4096), ideal_us=2.0), shown))
    for told in (
        "# MERGE: RMSNorm",
        "1 of 1 cases passed",
        "1.25 to 1.25 times torch.compile",
        "| 4096x4096 float16 | 40.00 µs | 60.0 µs |",
        "1678 | 25 % | 1.250 (1.250 to 1.250)",
        "| 512x65536 float16 | 77.00 µs |",
        "- eager reference: 5.000",
        "- liger: not timed (ModuleNotFoundError",
        "launch-bound",
        "4100 GB/s at best",
        "SM 345 MHz, memory 3201 MHz, 76 W, 31 °C, 0 % busy; after: SM 1980 MHz",
        "torch 2.11.0, triton 3.6.0, driver 580.1",
        "attempt 1, commit cccccccccccc",
        "noise",
        "## When it would not pay",
    ):
        assert told in text, f"{told!r} is not in\n{text}"


@pytest.mark.parametrize(("us", "named"), [(40, False), (60, True)])
def test_where_it_would_not_pay_is_named(rmsnorm: Op, us: float, named: bool) -> None:
    section = rendered(rmsnorm, measured(shape(us)), Decision.ABANDON).split("## When it would not pay")[1]
    assert ("- 4096x4096 float16: 0.833" in section.split("##")[0]) is named
    assert ("are not launch-bound: none" in section) is not named


def test_what_the_operations_are_of_is_said_where_it_is_not_the_authors_least(rmsnorm: Op) -> None:
    fewer = "a kernel may do with fewer"
    assert fewer not in rendered(rmsnorm, measured(shape(40)))
    assert fewer in rendered(rmsnorm, measured(replace(shape(40), moving_us=2.0)))
    unknown = rendered(rmsnorm, measured(replace(shape(40), moving_us=2.0, flops=0)))
    assert "is not known, so that the ceiling is that of memory alone" in unknown and fewer not in unknown


def test_a_warning_about_others_is_in_it(rmsnorm: Op) -> None:
    text = rendered(rmsnorm, measured(shape(40), warnings=("others used the GPU meanwhile: process 7 (512 MiB)",)))
    assert "Warning: others used the GPU meanwhile: process 7 (512 MiB)" in text


def test_the_checklist_is_answered_by_the_record_alone() -> None:
    attempt = Attempt(1, "correct", 1, "recorded", "model", "0" * 64, REPORT, Usage(1.0), "c" * 40)
    unmeasured = {item.asked: item for item in checklist.of(attempt, None, 0.92)}
    assert unmeasured["matches on every case"].holds is True and unmeasured["edge cases"].holds is False
    assert unmeasured["92 % of the ceiling at every shape"].told == "not known", "without a GPU nothing is claimed"
    assert unmeasured["faster than torch.compile"].holds is None
    timed = {item.asked: item for item in checklist.of(attempt, measured(shape(60)), 0.92)}
    slower = timed["faster than torch.compile"]
    assert slower.holds is False and slower.evidence.startswith("0.833 times")
    assert timed["faster than the best kernel before it"].holds is None
    share = "92 % of the ceiling at every shape"
    assert timed[share].holds is False, "17 % is not enough"
    (near,) = [one for one in checklist.of(attempt, measured(shape(10.2)), 0.92) if one.asked == share]
    assert near.holds is True
    apart = replace(REPORT, compiled=(Compiled("k", "sm_90", 4, 3, uncoalesced=(12,)),))
    (item,) = [
        one for one in checklist.of(replace(attempt, report=apart), None, 0.92) if one.asked == "accesses coalesced"
    ]
    assert item.holds is False and "line 12" in item.evidence
