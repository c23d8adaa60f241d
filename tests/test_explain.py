"""Why a run was decided so, in ten lines: each fact in its place, and a hostile text on one line."""

from __future__ import annotations

from dataclasses import replace

from orchestrator import explain
from orchestrator.decide import Thresholds
from orchestrator.records import Attempt, Decision, Measurement, Run, Usage, Verdict
from tests import past_runs

WRONG = Attempt(1, "correct", 1, "anthropic", "a\nmodel", "0" * 64, past_runs.wrong(), Usage(1.0))
RUN = Run("rmsnorm-1", "rmsnorm", "run/rmsnorm-1", "0" * 40, "2026-01-01T00:00:00+00:00", "anthropic", (WRONG,))
LOST = replace(RUN, verdict=Verdict(Decision.ESCALATE, "Nothing passed."))
FOUND = Measurement("torch.compile", 1.05, 1.08, "64x64 float16", 0.99, 0.8, noise=0.012, rungs_left=0)


def test_a_failure_is_its_smallest_case_and_the_first_wrong_elements() -> None:
    lines = explain.run(LOST, Thresholds())
    assert lines == (
        "ESCALATE: Nothing passed.",
        "attempt 1 (correct, round 1, a\\nmodel): WRONG_VALUES, 27 of 45 cases failed",
        "smallest failing case: M = 1, N = 7, float32, scale 0.001: WRONG_VALUES, 3 of 7 elements wrong, "
        "off by 0.2 at most, 20 times the tolerance",
        "first wrong elements: [0, 3] got 0.5, want 0.7; [0, 5] got nan, want -1.25",
        "pattern: Only N that is no power of two fails: padded lanes reach the result.",
        "judged on NVIDIA H200 with seed 7: 18 of 45 cases passed",
    )
    assert explain.attempt(WRONG) == lines[1:]


def test_a_measurement_is_its_interval_against_the_margin() -> None:
    passed = replace(WRONG, number=2, round=2, report=past_runs.passed())
    run = replace(LOST, attempts=(WRONG, passed), best=2, measurement=FOUND, verdict=Verdict(Decision.MERGE, "Faster."))

    def place(low: float, high: float, noise: float = 0.012) -> str:
        found = replace(FOUND, speedup_low=low, speedup_high=high, noise=noise)
        return explain.run(replace(run, measurement=found), Thresholds())[1]

    assert place(1.05, 1.08) == (
        "measured: 1.050 to 1.080 times torch.compile, wholly above 1 and the margin of 2.0% (noise 1.2%, floor 2.0%)"
    )
    assert (
        "wholly below" in place(0.9, 0.95)
        and "not clear of" in place(1.01, 1.05)
        and "not clear of" in place(1.05, 1.08, 0.06)
    )
    assert "not clear of" in place(0.97, 0.99)  # slower, and not beyond the margin
    assert explain.run(run, Thresholds())[3].startswith("attempt 2 (correct, round 2")  # the best, not the last failing


def test_what_never_ran_names_what_was_found_in_it() -> None:
    (_, found) = explain.attempt(replace(WRONG, report=past_runs.forbidden()))
    assert found == "found: rmsnorm_triton.py:12: reads the environment; instead: leave it out"


def test_ten_lines_are_enough_for_everything_at_once() -> None:
    findings = past_runs.forbidden().findings * 3
    loud = replace(past_runs.wrong(), findings=findings, diagnosis=("one",) * 5)
    lines = explain.run(replace(LOST, error="the disk is full", attempts=(replace(WRONG, report=loud),)), Thresholds())
    assert lines[0] == "what ended it: the disk is full" and len(lines) <= explain.LINES
    assert explain.run(replace(RUN, attempts=()), Thresholds()) == ("not decided",)
