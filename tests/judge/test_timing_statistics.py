"""Medians, intervals and the two clocks, for every input there is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.judge.timing import clocks, rounds, statistics
from orchestrator.judge.timing.clocks import Clocks
from orchestrator.judge.timing.rounds import Series
from orchestrator.judge.timing.statistics import Block, Interval, Rounds

latencies = st.lists(st.floats(1, 1e4), min_size=4, max_size=24)
factors = st.floats(0.1, 10)
seeds = st.integers(0, 2**32)


def measured(draw: random.Random, us: float, noise: float, rounds: int = 24) -> list[float]:
    """Block medians of something that takes `us`."""
    return [us * draw.lognormvariate(0, noise) for _ in range(rounds)]


def speedup(candidate: Sequence[float], *baselines: Sequence[float], sittings: int = 1) -> Interval:
    return statistics.speedup(Rounds(tuple(candidate), tuple(map(tuple, baselines)), sittings))


@settings(deadline=None, max_examples=30)
@given(latencies)
def test_something_is_as_fast_as_itself(times: list[float]) -> None:
    interval = speedup(times, times)
    assert interval.low <= interval.middle == 1 <= interval.high
    assert interval.high == pytest.approx(1), "the rounds are drawn for both alike"


@settings(deadline=None, max_examples=30)
@given(latencies, factors)
def test_twice_as_fast_is_twice_the_speedup(times: list[float], factor: float) -> None:
    baseline = sorted(times)
    before = speedup(times, baseline)
    after = speedup([us / factor for us in times], baseline)
    for name in ("low", "middle", "high"):
        assert getattr(after, name) == pytest.approx(factor * getattr(before, name))


@settings(deadline=None, max_examples=30)
@given(latencies, latencies)
def test_an_interval_holds_its_middle(times: list[float], other: list[float]) -> None:
    size = min(len(times), len(other))
    interval = speedup(times[:size], other[:size])
    assert 0 < interval.low <= interval.middle <= interval.high


@settings(deadline=None, max_examples=20)
@given(st.lists(latencies, min_size=1, max_size=4), factors)
def test_one_more_baseline_never_makes_a_kernel_faster(shapes: list[list[float]], factor: float) -> None:
    """The decision is against the best: adding one can only lower the speedup."""
    one = [Rounds(tuple(times), (tuple(times[::-1]),)) for times in shapes]
    two = [Rounds(shape.candidate, (*shape.baselines, tuple(factor * us for us in shape.candidate))) for shape in one]
    assert statistics.geomean_speedup(two).middle <= statistics.geomean_speedup(one).middle * (1 + 1e-9)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_the_same_data_give_the_same_interval(seed: int) -> None:
    draw = random.Random(seed)
    times, other = measured(draw, 10, 0.02), measured(draw, 11, 0.02)
    assert speedup(times, other) == speedup(times, other)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw, inside = random.Random(7), 0
    for _ in range(200):
        interval = speedup(measured(draw, 10, 0.02), measured(draw, 10.5, 0.02))
        inside += interval.low <= 1.05 <= interval.high
    assert 176 <= inside <= 199, f"{inside} of 200"


def test_the_interval_has_in_it_what_differs_from_sitting_to_sitting() -> None:
    """Rounds alone know nothing of it: what one process takes is shifted by as much in every round."""
    draw, inside, inside_without = random.Random(7), 0, 0
    for _ in range(200):
        mine, theirs = (
            [us for _ in range(6) for us in measured(draw, middle * draw.lognormvariate(0, 0.02), 0.005)]
            for middle in (10, 10.5)
        )
        with_them, without = (speedup(mine, theirs, sittings=count) for count in (6, 1))
        inside += with_them.low <= 1.05 <= with_them.high
        inside_without += without.low <= 1.05 <= without.high
    assert inside >= 160, f"{inside} of 200"
    assert inside_without < 120, f"{inside_without} of 200"


def test_the_fastest_is_the_one_with_the_lowest_latency() -> None:
    assert statistics.fastest({"a": [3, 1, 9, 3], "b": [2, 2, 100, 2], "c": [4, 4, 4, 4]}) == "b"
    assert statistics.geomean([1, 4]) == pytest.approx(2)
    assert statistics.spread([1, 2, 3, 4, 5]) == pytest.approx(2 / 3)


def test_a_latency_forgets_what_was_disturbed_and_does_not_jump_between_two_times() -> None:
    """A short kernel takes one time at some places in memory and another elsewhere; a median is either, by chance."""
    assert statistics.latency_us([5.0] * 7 + [900.0]) == 5.0
    one_more, one_less = ([4.5] * few + [5.5] * (24 - few) for few in (13, 11))
    assert statistics.latency_us(one_less) / statistics.latency_us(one_more) < 1.04
    assert statistics.median(one_less) / statistics.median(one_more) > 1.2


@settings(deadline=None)
@given(st.floats(1, 1e4), st.floats(0, 1e5), st.integers(2, 20))
def test_the_slope_is_what_a_replay_takes_whatever_a_message_takes(us: float, message_us: float, few: int) -> None:
    blocks = [Block(count, message_us + (count + 1) * us) for count in (few, 2 * few, few, 2 * few)]
    assert statistics.slope_us(blocks) == pytest.approx(us, abs=1e-6)


def test_a_slope_needs_two_lengths() -> None:
    with pytest.raises(ValueError, match="two lengths"):
        statistics.slope_us([Block(4, 100.0), Block(4, 101.0)])


@given(st.floats(20, 1e3), st.floats(30, 500))
def test_a_busy_host_convicts_nobody(us: float, apart: float) -> None:
    """Where our own processes disagree by so much, as much proves nothing against the candidate."""
    unquiet = [Clocks(20, 90.0), Clocks(30, 100 + apart), Clocks(25, 95.0)]
    assert clocks.unreported_us(Clocks(us, us + 70 + apart), unquiet) == 0


def series(us: float, slope_us: float) -> Series:
    """Rounds of something that reports `us` and takes the judge `slope_us` a replay."""
    blocks = [Block(count, 300 + count * slope_us) for count in (5, 10, 5, 10)]
    return Series([us] * len(blocks), blocks)


@given(st.floats(0, 100), st.floats(1, 200))
def test_plain_calls_never_take_less_than_the_judge_waits(reported: float, truth: float) -> None:
    baselines = [series(us, us + 70) for us in (12.0, 30.0)]
    believed = rounds.by_the_judges_clock(series(reported, truth + 70), baselines)
    assert statistics.median(believed) == pytest.approx(max(reported, truth))
    assert len(believed) == 4


@given(st.floats(20, 1e3))
def test_work_that_no_event_sees_is_seen_by_the_judge(truth: float) -> None:
    baselines = [series(us, us + 70) for us in (12.0, 30.0)]
    assert rounds.unreported_us(series(2.0, truth + 70), baselines) == pytest.approx(truth - 2.0)
    assert rounds.unreported_us(series(truth, truth + 70), baselines) == 0


def ours(overhead: float) -> Sequence[Clocks]:
    return [Clocks(us, us + overhead) for us in (20.0, 55.0, 31.0)]


@given(st.floats(1, 1e4), st.floats(10, 500))
def test_who_reports_what_the_judge_waits_for_is_believed(us: float, overhead: float) -> None:
    assert clocks.unreported_us(Clocks(us, us + overhead), list(ours(overhead))) == 0


@given(st.floats(25, 1e4), st.floats(10, 500), st.floats(0, 0.7))
def test_who_reports_less_is_not(us: float, overhead: float, share: float) -> None:
    """At 70 % of the truth or less, from 25 us on: 7.5 of them are missing, the slack is 5 and a tenth of 17.5."""
    missing = clocks.unreported_us(Clocks(us * share, us + overhead), list(ours(overhead)))
    assert missing == pytest.approx(us * (1 - share), rel=1e-6)


@pytest.mark.parametrize("sittings", [1, 2, 4])
def test_an_interval_holds_what_is_true_as_often_as_it_says(sittings: int) -> None:
    """Two that take the same time, measured again and again, each process with a bias of its own where there are
    several: one in a hundred says otherwise, not one in twenty."""
    draw, times = random.Random(3), 400

    def sat() -> list[float]:
        biases = [draw.lognormvariate(0, 0.006 if sittings > 1 else 0) for _ in range(sittings)]
        return [us for bias in biases for us in measured(draw, 10 * bias, 0.02 if sittings == 1 else 0.001)]

    intervals = [speedup(sat(), sat(), sittings=sittings) for _ in range(times)]
    off = sum(not one.low <= 1 <= one.high for one in intervals)
    assert off <= 2.5 * times * (1 - statistics.CONFIDENCE / 100)


def test_any_time_that_can_be_told_can_be_called_as_often_as_is_needed() -> None:
    contender: Any = SimpleNamespace(calls=lambda count: Block(count, 3.0 * count))
    assert [rounds.call_us(contender, us) for us in (5e-324, 1.0, 1e300)] == pytest.approx([3.0] * 3)
