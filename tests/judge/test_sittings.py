"""Several sittings of one shape are one measurement of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import weigh
from orchestrator.judge.timing import sittings
from orchestrator.measured import COMPILED, REFERENCE, Measured, ShapeTimings, Timing
from orchestrator.records import Status

LAUNCH_US = 4.0


def timed(name: str, us: float) -> Timing:
    return Timing(name, (us, us, us, us), us)


def shape(candidate_us: float = 10.0, **baselines: float) -> ShapeTimings:
    theirs = baselines or {REFERENCE: 30.0, COMPILED: 12.0}
    return ShapeTimings(
        *({"M": 4096, "N": 1024}, "bfloat16", 1000, 10, 5.0),
        candidate=timed("candidate", candidate_us),
        baselines=tuple(timed(name, us) for name, us in theirs.items()),
        twin=(30.0,) * 4,
        twin_of=REFERENCE,
    )


@pytest.mark.parametrize(("us", "wanted"), [(4.1, False), (8.0, False), (8.1, True), (500.0, True)])
def test_kernels_that_are_more_than_a_launch_sit_again(us: float, wanted: bool) -> None:
    assert sittings.again(shape(us), LAUNCH_US) is wanted


def test_the_rounds_of_all_sittings_are_the_shapes() -> None:
    both = sittings.joined(shape(10.0), shape(11.0))
    assert both.sittings == 2 and both.candidate.latencies_us == (10.0,) * 4 + (11.0,) * 4
    assert [len(one.latencies_us) for one in both.baselines] == [8, 8] and len(both.twin) == 8
    assert sittings.joined(both, shape(12.0)).sittings == 3


def test_a_baseline_that_was_lost_in_one_of_them_is_absent() -> None:
    later = replace(shape(10.0, **{COMPILED: 12.0}), absent={REFERENCE: "it ran out of memory"}, twin_of=COMPILED)
    both = sittings.joined(shape(10.0), later)
    assert [one.name for one in both.baselines] == [COMPILED]
    assert both.absent == {REFERENCE: "it ran out of memory"}
    assert not both.twin and not both.twin_of, "what was timed twice is not the same"


def test_without_a_graph_in_one_there_is_none() -> None:
    plain = replace(timed("candidate", 10.0), graph=False, detail="it synchronises")
    for pair in ((shape(), replace(shape(), candidate=plain)), (replace(shape(), candidate=plain), shape())):
        assert not sittings.joined(*pair).candidate.graph
        assert sittings.joined(*pair).candidate.detail == "it synchronises"


def test_rounds_that_are_no_sittings_are_refused() -> None:
    with pytest.raises(ValueError, match="3 sittings"):
        replace(shape(), sittings=3)


def test_sittings_that_differ_widen_the_interval() -> None:
    """One process of the candidate's takes 10, another 11: a third may take more or less than either."""
    both = sittings.joined(shape(10.0), shape(11.0))
    found = weigh.rows(_measured(both))[0].speedups[COMPILED]
    assert found.low < 12 / 11 and found.high > 12 / 10


def test_how_far_processes_are_apart_all_short_shapes_tell() -> None:
    """Two that happen to take the same time at one shape say little, where they do not at another."""
    same, other = (sittings.joined(shape(10.0), shape(again)) for again in (10.0, 11.0))
    alone = weigh.rows(_measured(same))[0].speedup
    assert (alone.low, alone.high) == pytest.approx((1.2, 1.2))
    beside = weigh.rows(_measured(same, replace(other, dims={"M": 3, "N": 8})))
    of_two = beside[0].speedup
    assert of_two.low < 1.15 and of_two.high > 1.25
    of_four = weigh.rows(_measured(same, *(replace(other, dims={"M": m, "N": 8}) for m in (3, 4, 5))))[0].speedup
    assert of_two.low < of_four.low < 1.2 < of_four.high < of_two.high, "the more of them, the better it is known"


def test_long_kernels_are_no_word_on_short_ones() -> None:
    """Processes lie as far apart as those of kernels alike do."""
    same, other = (sittings.joined(shape(10.0), shape(again)) for again in (10.0, 11.0))
    long = sittings.joined(*(shape(us, **{COMPILED: 120.0}) for us in (100.0, 100.0)))
    short, of_long = weigh.rows(_measured(same, replace(other, dims={"M": 3, "N": 8}), long))[::2]
    assert (of_long.speedup.low, of_long.speedup.high) == pytest.approx((1.2, 1.2))
    assert short.speedup.low < 1.15, "and the other way round"


def _measured(*shapes: ShapeTimings) -> Measured:
    return Measured(Status.PASSED, "", "nonce", shapes=shapes, expected_shapes=len(shapes), launch_us=LAUNCH_US)
