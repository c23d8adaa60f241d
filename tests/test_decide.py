"""The decision: the table row by row, and what must hold for every input there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.decide import Thresholds, decide, table
from orchestrator.records import Decision, Measurement, Status, Verdict

DEFAULT = Thresholds(parity_rungs=("launch", "block"))
BOTH = ("correct", "launch", "block")
MEASURED = Measurement(
    baseline="torch.compile",
    speedup_low=1.10,
    speedup_high=1.14,
    slowest_shape="1024x1023 float16",
    slowest_speedup=1.05,
    roofline_share=0.60,
    noise=0.01,
    rungs_left=2,
)


def ask(measurement: Measurement | None, *, passed: bool = True, last: Status | None = None, **more: Any) -> Verdict:
    given_so = {"unmeasured_reason": "there is no GPU", "rounds": 3, **more}
    thresholds = given_so.pop("thresholds", DEFAULT)
    return decide(last or (Status.PASSED if passed else None), passed, measurement, thresholds, **given_so)


def measured(**fields: Any) -> Measurement:
    return replace(MEASURED, **fields)


PARITY = {"speedup_low": 0.99, "speedup_high": 1.01, "slowest_speedup": 0.99}
SLOWER = {"speedup_low": 0.80, "speedup_high": 0.90, "slowest_speedup": 0.70}

# fields of the measurement, what was tried, the decision
TABLE = [
    ({}, (), Decision.MERGE),
    ({"speedup_low": 1.02}, (), Decision.MERGE),  # exactly at the margin
    ({"speedup_low": 1.019}, (), Decision.REWORK),
    ({"speedup_low": 1.05, "noise": 0.06}, (), Decision.REWORK),  # the machine's own noise is the margin
    ({"speedup_low": 1.06, "noise": 0.06}, (), Decision.MERGE),
    ({"speedup_low": 1.03, "noise": 0.06, "noise_overall": 0.01}, (), Decision.MERGE),  # of all shapes: of their mean
    ({"speedup_low": 1.03, "noise": 0.06, "noise_overall": 0.04}, (), Decision.REWORK),
    ({"slowest_speedup": 0.95, "noise": 0.06, "noise_overall": 0.01}, (), Decision.MERGE),  # of one: the largest
    ({"slowest_speedup": 0.95, "noise": 0.04, "noise_overall": 0.01}, (), Decision.REWORK),
    ({"slowest_speedup": 0.98}, (), Decision.MERGE),
    ({"slowest_speedup": 0.97}, (), Decision.REWORK),
    ({"slowest_speedup": 0.97}, BOTH, Decision.REWORK),  # faster on the whole is not parity
    ({"slowest_speedup": 0.97, "rungs_left": 0}, BOTH, Decision.ABANDON),
    ({**PARITY, "roofline_share": 0.92}, (), Decision.MERGE),
    ({**PARITY, "roofline_share": 0.919}, (), Decision.REWORK),
    ({**PARITY, "roofline_share": 0.95, "slowest_speedup": 0.5}, (), Decision.REWORK),
    ({"speedup_low": 0.97, "speedup_high": 1.30, "roofline_share": 0.95}, (), Decision.REWORK),  # may be slower
    (PARITY, (), Decision.REWORK),
    (PARITY, ("correct", "launch"), Decision.REWORK),
    (PARITY, ("correct", "block"), Decision.REWORK),
    (PARITY, BOTH, Decision.ABANDON),
    ({**PARITY, "rungs_left": 0}, (), Decision.ABANDON),
    (SLOWER, (), Decision.REWORK),
    (SLOWER, BOTH, Decision.REWORK),
    ({**SLOWER, "rungs_left": 0}, BOTH, Decision.ABANDON),
]


@pytest.mark.parametrize(("fields", "done", "decision"), TABLE)
def test_the_table(fields: dict[str, Any], done: tuple[str, ...], decision: Decision) -> None:
    assert ask(measured(**fields), rungs_done=done).decision is decision


@pytest.mark.parametrize("status", list(Status))
def test_nothing_passed(status: Status) -> None:
    refused = status in (Status.TAMPERED, Status.FORBIDDEN, Status.FALLBACK)
    verdict = ask(None, passed=False, last=status)
    assert verdict.decision is (Decision.REJECT if refused else Decision.ESCALATE)
    assert "3 rounds" in verdict.reason


@pytest.mark.parametrize("status", [Status.WRONG_VALUES, Status.TAMPERED])
def test_a_given_kernel_failed_and_there_was_no_model(status: Status) -> None:
    verdict = ask(None, passed=False, last=status, rounds=0)
    assert verdict.decision is (Decision.REJECT if status is Status.TAMPERED else Decision.ESCALATE)
    assert "The kernel that was given" in verdict.reason and str(status) in verdict.reason


def test_a_fault_of_ours_is_not_held_against_the_candidate() -> None:
    assert "fault of ours" in ask(None, passed=False, last=Status.INFRASTRUCTURE).reason


def test_nothing_attempted() -> None:
    assert ask(None, passed=False).decision is Decision.ESCALATE


def test_a_later_failure_keeps_the_earlier_kernel() -> None:
    assert ask(MEASURED, last=Status.TAMPERED).decision is Decision.MERGE


def test_passed_but_unmeasured_says_why() -> None:
    verdict = ask(None)
    assert verdict == Verdict(Decision.UNMEASURED, "Correct, but not measured: there is no GPU.")


@pytest.mark.parametrize("noise", [float("nan"), float("inf"), -0.1, 1.0, 5.0])
def test_a_noise_that_drowns_everything_is_no_measurement(noise: float) -> None:
    verdict = ask(measured(**PARITY, roofline_share=0.99, noise=noise))
    assert verdict.decision is Decision.UNMEASURED
    assert "noise" in verdict.reason


def test_persisting_goes_on_at_parity_while_there_are_rungs() -> None:
    assert ask(measured(**PARITY), rungs_done=BOTH, persist=True).decision is Decision.REWORK
    assert ask(measured(**PARITY, rungs_left=0), rungs_done=BOTH, persist=True).decision is Decision.ABANDON


def test_thresholds_are_obeyed() -> None:
    strict = Thresholds(margin_floor=0.2, roofline_share=0.5, parity_rungs=DEFAULT.parity_rungs)
    assert ask(measured(roofline_share=0.49), thresholds=strict).decision is Decision.REWORK
    assert ask(measured(roofline_share=0.5), thresholds=strict).decision is Decision.MERGE
    one = Thresholds(parity_rungs=("launch",))
    assert ask(measured(**PARITY), thresholds=one, rungs_done=("launch",)).decision is Decision.ABANDON


@pytest.mark.parametrize("fields", [{"margin_floor": -0.1}, {"margin_floor": 1}, {"roofline_share": 0}])
def test_thresholds_that_make_no_sense(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        Thresholds(**fields)  # type: ignore[arg-type]


def test_the_table_is_shown_as_it_was_filled_in() -> None:
    """Every line in its order, with its figures where a run has them; what is decided is the first that holds."""
    told = {"unmeasured_reason": "there is no GPU", "rounds": 3}
    slow = table(Status.PASSED, True, measured(**SLOWER, rungs_left=0), DEFAULT, **told)
    assert [line.holds for line in slow] == [False] * 7 + [True, False, True]
    assert slow[5].figures == "at least 0.800 times (asked 1.020), slowest shape 0.700 (asked 0.980)"
    wrong = table(Status.WRONG_VALUES, False, None, DEFAULT, **told)
    assert [line.decision for line in wrong if line.holds] == [Decision.ESCALATE]
    assert [line.condition for line in wrong] == [line.condition for line in slow]
    assert wrong[2].figures == "WRONG_VALUES" and wrong[5].figures == ""


def test_reasons_hold_the_numbers() -> None:
    faster = ask(measured(excluded_shapes=("rows of one element",))).reason
    assert faster == (
        "Faster: 1.100 to 1.140 times the speed of torch.compile, beyond the margin of 2.0%, the slowest shape, "
        "1024x1023 float16, at 1.050 times; outside its envelope: rows of one element."
    )
    roofline = ask(measured(**PARITY, roofline_share=0.95)).reason
    assert "95.0% of the roofline (enough from 92%)" in roofline
    rework = ask(measured(**SLOWER, rungs_left=1)).reason
    assert rework.startswith("Slower: 0.800 to 0.900") and rework.endswith("1 rung left to try.")
    abandon = ask(measured(**PARITY), rungs_done=BOTH).reason
    assert abandon.startswith("Parity within the margin of 2.0% after correct, launch, block: 0.990 to 1.010")
    assert abandon.endswith("it would pay from 1.020 times on.")
    somewhere = ask(measured(slowest_speedup=0.5, rungs_left=0)).reason
    assert somewhere.endswith("it would pay at the other shapes.")


# --- for every input ------------------------------------------------------------------------------------------------

speedups = st.floats(0.01, 20)
shares = st.floats(0, 1)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    low, high = sorted((draw(speedups), draw(speedups)))
    return Measurement(
        baseline=draw(st.sampled_from(["eager", "torch.compile"])),
        speedup_low=low,
        speedup_high=high,
        slowest_shape="1x7 float32",
        slowest_speedup=draw(speedups),
        roofline_share=draw(shares),
        noise=draw(st.floats(0, 0.5) | st.floats()),
        rungs_left=draw(st.integers(0, 5)),
        excluded_shapes=draw(st.sampled_from([(), ("short rows",)])),
        noise_overall=draw(st.none() | st.floats(0, 0.5) | st.floats()),
    )


@st.composite
def near_the_edges(draw: st.DrawFn) -> Measurement:
    """Values where the table's rows meet, which plain random ones seldom hit."""
    values = st.sampled_from([0.5, 0.9, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.5])
    low, high = sorted((draw(values), draw(values)))
    shape, share = draw(values), draw(st.sampled_from([0.5, 0.91, 0.92, 0.93, 1.0]))
    noise = draw(st.sampled_from([0.0, 0.02, 0.03, 0.1]))
    return Measurement("eager", low, high, "1x7 float32", shape, share, noise, draw(st.integers(0, 2)))


situations = st.fixed_dictionaries(
    {
        "last_status": st.none() | st.sampled_from(Status),
        "passed": st.booleans(),
        "measurement": st.none() | measurements() | near_the_edges(),
        "thresholds": st.just(DEFAULT) | st.builds(Thresholds, st.floats(0, 0.5), st.floats(0.01, 1)),
        "unmeasured_reason": st.just("there is no GPU"),
        "rounds": st.integers(0, 5),
        "rungs_done": st.lists(st.sampled_from([*BOTH, "autotune", "tune"]), unique=True).map(tuple),
        "persist": st.booleans(),
    }
)


@settings(deadline=None)  # a busy machine is no finding
@given(situations)
def test_it_always_answers_in_one_sentence(situation: dict[str, Any]) -> None:
    verdict = decide(**situation)
    assert isinstance(verdict.decision, Decision)
    assert verdict.reason.endswith(".")
    assert "\n" not in verdict.reason
    assert decide(**situation) == verdict


@settings(deadline=None)  # a busy machine is no finding
@given(situations)
def test_each_decision_has_what_it_needs(situation: dict[str, Any]) -> None:
    decision = decide(**situation).decision
    passed, found, limits = situation["passed"], situation["measurement"], situation["thresholds"]
    refused = situation["last_status"] in (Status.TAMPERED, Status.FORBIDDEN, Status.FALLBACK)
    assert (decision is Decision.REJECT) == (not passed and refused)
    assert (decision is Decision.ESCALATE) == (not passed and not refused)
    if decision in (Decision.MERGE, Decision.REWORK, Decision.ABANDON):
        assert passed and found is not None
    if decision is Decision.MERGE:
        assert found.slowest_speedup >= 1 - max(found.noise, limits.margin_floor)
        assert found.speedup_low >= 1 or found.roofline_share >= limits.roofline_share
    if decision is Decision.REWORK:
        assert found.rungs_left > 0
    if decision is Decision.ABANDON and (found.rungs_left > 0):
        assert not situation["persist"]
        assert set(limits.parity_rungs) <= set(situation["rungs_done"])
    if passed and found is None:
        assert decision is Decision.UNMEASURED


@settings(deadline=None)  # a busy machine is no finding
@given(situations, st.floats(1, 3), st.floats(1, 3), st.floats(0, 1))
def test_a_faster_kernel_is_never_worse_off(
    situation: dict[str, Any], faster: float, even: float, nearer: float
) -> None:
    """What would be merged is merged too if the interval, the slowest shape or the roofline share is better."""
    found = situation["measurement"]
    if decide(**situation).decision is not Decision.MERGE:
        return
    better = replace(
        found,
        speedup_low=found.speedup_low * faster,
        speedup_high=found.speedup_high * faster,
        slowest_speedup=found.slowest_speedup * even,
        roofline_share=min(1.0, found.roofline_share + nearer * (1 - found.roofline_share)),
    )
    assert decide(**{**situation, "measurement": better}).decision is Decision.MERGE


@settings(deadline=None)  # a busy machine is no finding
@given(situations, st.floats(0, 1))
def test_a_quieter_machine_never_unmerges_the_faster(situation: dict[str, Any], quieter: float) -> None:
    found = situation["measurement"]
    if found is None or not (0 <= found.noise < 1 and 0 <= found.spread < 1) or found.slowest_speedup < 1:
        return
    if decide(**situation).decision is Decision.MERGE and found.speedup_low >= 1:
        calm = replace(found, noise=found.noise * quieter, noise_overall=found.spread * quieter)
        assert decide(**{**situation, "measurement": calm}).decision is Decision.MERGE


def test_a_grid_over_all_rows_reaches_every_decision() -> None:
    """Every combination of the table's conditions has an answer, and each decision is the answer to some."""
    seen = set()
    for passed, last, fields, share, left, done in product(
        (False, True), (None, *Status), ({}, PARITY, SLOWER), (0.5, 0.95), (0, 1), ((), BOTH)
    ):
        found = measured(**fields, roofline_share=share, rungs_left=left)
        seen |= {ask(found, passed=passed, last=last, rungs_done=done).decision, ask(None, passed=passed).decision}
    assert seen == set(Decision)


@pytest.mark.parametrize(
    ("passed", "found", "decision"),
    [
        (True, MEASURED, Decision.ESCALATE),  # which would be merged
        (True, measured(**PARITY), Decision.REWORK),  # a later stage may repair it
        (False, None, Decision.ESCALATE),
    ],
)
def test_what_the_audit_establishes_is_never_merged(
    passed: bool, found: Measurement | None, decision: Decision
) -> None:
    verdict = ask(found, passed=passed, objection="of attempt 1 the audit establishes a fault")
    assert verdict.decision is decision
    assert decision is Decision.REWORK or "a fault; a person looks" in verdict.reason
