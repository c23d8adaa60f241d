"""Where the time goes: sentences that say what the figures say, and nothing where there is nothing to say."""

from __future__ import annotations

from functools import reduce

import pytest

from orchestrator import bottleneck, decision
from orchestrator.judge.timing import sittings
from orchestrator.measured import Measured, ShapeTimings
from orchestrator.records import Compiled, Status
from tests.measurements import measured, shape

FINE = Compiled(
    *("rms", "sm_90", 4, 3),
    **{"registers": 40, "spilled_bytes": 0, "shared_bytes": 512, "load_bits": {128: 2}, "store_bits": {128: 1}},
    **{"bulk_copies": 0, "tensor_cores": False, "occupancy": 1.0},
)  # type: ignore[arg-type]


def of(**changes: object) -> Compiled:
    return Compiled(**{**vars(FINE), **changes})


def test_a_shape_that_lags_is_named_with_its_share_and_its_rivals() -> None:
    slow, fast = shape(60, dims=(4096, 1024)), shape(10.5, dims=(8192, 1024))
    (first, call) = bottleneck.where_time_goes(measured(fast, slow))
    assert first.startswith("4096x1024 float16: 60.00 µs, 0.83 times the speed of torch.compile; ")
    assert first.endswith("17 % of the ceiling, where that reaches 20 %")
    assert call.startswith("a plain call takes 20.0 µs beyond the kernel (median)") and "at 1 of 2 shapes" in call


def test_more_than_a_few_are_counted() -> None:
    found = bottleneck.where_time_goes(measured(*(shape(60, dims=(m, 64)) for m in (1, 2, 3, 4, 5))))
    assert "2 more of 5 shapes are behind a baseline" in found[3]


def test_what_is_launch_bound_is_not_called_slow() -> None:
    small = shape(3.9, compiled=2.0, dims=(1, 4096), ideal_us=2.0)
    assert not any("times the speed" in one for one in bottleneck.where_time_goes(measured(small)))


def test_nothing_was_timed() -> None:
    assert bottleneck.where_time_goes(measured(status=Status.WRONG_VALUES)) == ()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"compiled": (FINE,)}, ""),
        ({"compiled": (FINE, of(spilled_bytes=96))}, "registers spill, up to 96 bytes a thread"),
        ({"compiled": (FINE, of(load_bits={16: 8}))}, "1 of 2 specializations load at most 16 bits a thread"),
        ({"compiled": (of(load_bits={}, bulk_copies=2),)}, ""),
        ({"compiled": (of(occupancy=0.125), FINE)}, "as few as 12 % of a multiprocessor"),
        ({"compiled": (FINE,), "matmul_tflops": {"float16": 700.0}}, "nothing is multiplied on the tensor cores"),
        ({"compiled": (of(tensor_cores=True),), "matmul_tflops": {"float16": 700.0}}, ""),
        ({"compiled": (Compiled("rms", "sm_90", 4, 3),)}, ""),
    ],
)
def test_compiled_facts_that_cost_time(fields: dict[str, object], said: str) -> None:
    found: Measured = measured(shape(10.5), **fields)
    _, *rest = bottleneck.where_time_goes(found)
    assert said in rest[0] if said else not rest, rest


def test_the_facts_are_in_the_table_and_in_lines_and_unknown_ones_are_said_to_be() -> None:
    found = measured(shape(10.5), compiled=(FINE, Compiled("k|\n", "sm_90", 4, 3)))
    text = decision.timings(found)
    assert "| rms | sm_90 | 4 | 3 | 40 | 0 | 512 | 128 x 2 | 128 x 1 | no | 100 % |" in text
    assert "| ? | ? | ? | ? | ? | ? | ? |" in text
    assert bottleneck.compiled_facts(found)[0].startswith("rms for sm_90, 4 warps: 40 registers, 0 bytes spilled")
    assert "unknown registers" in bottleneck.compiled_facts(found)[1]


def sat(*each_us: float) -> ShapeTimings:
    """A shape that sat as often, its kernel taking so long in each."""
    return reduce(sittings.joined, (shape(us) for us in each_us))


def test_a_kernel_that_is_slower_in_some_processes_is_said_to_be() -> None:
    """An autotuned rmsnorm on an H200: 9.4 µs in three processes, 10.5 in the fourth."""
    said = bottleneck.where_time_goes(measured(sat(9.37, 9.27, 10.5, 9.34), sat(9.4, 9.5, 9.3, 9.6)))
    assert any(
        "in 1 of 4 processes up to 10.50 µs, 12 % more than usual, and so at 1 of 2 shapes" in one for one in said
    )
    steady = bottleneck.where_time_goes(measured(sat(9.4, 9.5, 9.3, 9.6)))
    assert not any("processes" in one for one in steady)
