"""What is decided by: against the fastest baseline, without launches, and never a time that cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import weigh
from orchestrator.measured import COMPILED, REFERENCE, Timing
from orchestrator.records import Status, from_json, to_json
from tests.measurements import measured, shape, timing


def test_the_fastest_baseline_is_what_counts() -> None:
    found = weigh.weigh(measured(shape(40), shape(25)), rungs_left=2)
    assert found.baseline == COMPILED
    assert found.speedup_low == pytest.approx(found.speedup_high) == pytest.approx(50 / (40 * 25) ** 0.5)
    assert (found.slowest_shape, found.slowest_speedup) == ("4096x4096 float16", pytest.approx(1.25))
    assert found.rungs_left == 2
    over = weigh.over_baseline(measured(shape(40)), REFERENCE)
    assert over is not None and over.middle == pytest.approx(5), "each is shown"


def test_baselines_that_are_fastest_at_different_shapes_are_named() -> None:
    other = replace(shape(40), baselines=(timing(REFERENCE, 45), timing(COMPILED, 60)))
    found = weigh.weigh(measured(shape(40), shape(40), other), rungs_left=0)
    assert found.baseline == "the fastest baseline of each shape (torch.compile at 2, eager reference at 1)"
    assert found.slowest_speedup == pytest.approx(45 / 40)


def test_where_the_launch_takes_the_time_the_kernel_is_not_called_slow() -> None:
    small = shape(3.9, compiled=2.0, dims=(1, 4096), ideal_us=2.0)
    found = measured(small, shape(40))
    assert [row.launch_bound for row in weigh.rows(found)] == [True, False]
    assert weigh.weigh(found, rungs_left=0).slowest_speedup == pytest.approx(1.25)
    slow = shape(4.1, compiled=2.0, dims=(1, 4096), ideal_us=2.0)  # more than two launches: that is the kernel
    assert weigh.weigh(measured(slow, shape(40)), rungs_left=0).slowest_speedup == pytest.approx(2 / 4.1)


def test_shapes_that_are_all_launch_bound_still_give_an_answer() -> None:
    found = weigh.weigh(measured(shape(3.0, compiled=3.3, ideal_us=2.0)), rungs_left=0)
    assert found.speedup_low == pytest.approx(1.1)


def test_a_time_that_beats_the_ceiling_is_no_measurement() -> None:
    found = measured(shape(40), shape(7.6, ideal_us=10.0))
    assert "a fault of the measurement or a cheat" in weigh.fault(found)
    with pytest.raises(ValueError, match="cheat"):
        weigh.weigh(found, rungs_left=0)
    nearly = measured(shape(9.2, ideal_us=10.0))  # a copy by torch is not the best there can be
    assert weigh.fault(nearly) == "" and weigh.weigh(nearly, rungs_left=0).roofline_share == 1


def test_a_kernel_that_does_with_fewer_operations_than_the_reference_is_not_too_fast() -> None:
    found = replace(shape(7.6, ideal_us=10.0), moving_us=2.0)
    assert weigh.fault(measured(shape(40), found)) == "" and found.least_us == 2.0
    assert weigh.weigh(measured(found), rungs_left=0).roofline_share == 1
    assert "5.00 times as fast" in weigh.fault(measured(shape(40), replace(found, moving_us=38.0)))


def test_where_few_bytes_move_a_kernel_may_beat_a_copy() -> None:
    few, many = shape(8, ideal_us=10), shape(8, ideal_us=10, dims=(16384, 4096))
    assert weigh.fault(measured(few)) == ""
    assert "16384x4096" in weigh.fault(measured(few, many))


def test_the_share_of_the_ceiling_is_of_the_shapes_that_can_reach_it() -> None:
    small, large = shape(40, ideal_us=8), shape(40, dims=(16384, 4096), ideal_us=38)
    assert weigh.weigh(measured(small, large), rungs_left=0).roofline_share == pytest.approx(38 / 40)
    assert weigh.weigh(measured(small), rungs_left=0).roofline_share == pytest.approx(8 / 40)


def test_the_noise_is_a_baseline_against_itself() -> None:
    found = measured(shape(40, twin=1.004), shape(40, twin=0.97))
    weighed = weigh.weigh(found, rungs_left=0)
    assert weighed.noise == pytest.approx(0.03), "at the noisiest shape"
    assert weighed.spread == pytest.approx(1 - (1.004 * 0.97) ** 0.5), "of their geometric mean"
    for unknown in (replace(shape(40), twin=()), replace(shape(40), twin_of="what is not there")):
        assert "noise is unknown" in weigh.fault(measured(unknown))


def test_a_curve_is_shown_and_not_decided_by() -> None:
    shown = replace(shape(200, dims=(512, 65536)), curve=True)
    found = measured(shape(40), shown)
    assert weigh.weigh(found, rungs_left=0) == weigh.weigh(measured(shape(40)), rungs_left=0)
    assert [row.name for row in weigh.curve(found)] == ["512x65536 float16"] and len(weigh.rows(found)) == 1
    assert "cheat" in weigh.fault(measured(shape(40), replace(shape(7, ideal_us=10), curve=True)))


def test_a_measurement_of_nothing_is_none() -> None:
    convicted = measured(status=Status.WRONG_VALUES, message="an empty graph", expected_shapes=0)
    assert weigh.fault(convicted) == "nothing was timed"


def test_a_measurement_with_a_shape_missing_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="all 2 shapes"):
        measured(shape(40), expected_shapes=2)
    with pytest.raises(ValueError, match="in every round"):
        replace(shape(40), candidate=Timing("candidate", (1.0,), 1.0))
    with pytest.raises(ValueError, match="finite and above 0"):
        Timing("candidate", (1.0, 0.0), 1.0)


def test_it_can_be_weighed_again_from_its_file() -> None:
    found = measured(shape(40), shape(25))
    again = from_json(type(found), to_json(found))
    assert weigh.weigh(again, rungs_left=1) == weigh.weigh(found, rungs_left=1)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(12, 500), min_size=1, max_size=4), st.floats(1, 3))
def test_a_slower_kernel_never_weighs_more(times: list[float], slower: float) -> None:
    before = weigh.weigh(measured(*map(shape, times)), rungs_left=0)
    after = weigh.weigh(measured(*(shape(us * slower) for us in times)), rungs_left=0)
    assert after.speedup_low <= before.speedup_low * (1 + 1e-9)
    assert after.slowest_speedup <= before.slowest_speedup * (1 + 1e-9)
    assert after.roofline_share <= before.roofline_share * (1 + 1e-9)
