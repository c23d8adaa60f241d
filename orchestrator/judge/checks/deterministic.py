"""The same values give the same bits.

A file that adds by atomic operations may give others, because their order is nobody's promise (unless the op asks for
it: `repeatable`); then it is called more often instead, and each result must be right.

Catches: races, a result that depends on what was asked before.
Cannot catch: a race that this machine does not lose; Triton's interpreter runs programs in order and loses none. A
drift within the tolerance of a file that has atomics.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series, identical
from orchestrator.records import Status

_REPEATS_IN_ANY_ORDER = 8


def deterministic(series: Series) -> None:
    """Raises CandidateFailed where a repeated call differs by a bit; with atomics, where one of many is wrong."""
    first = series.first
    if all(identical(one.results, first.results) for one in series.again()):
        return
    if not series.any_order:
        raise CandidateFailed(Status.NONDETERMINISTIC, "the same call gave other bits when it was repeated")
    if not all(series.right(first.inputs) for _ in range(_REPEATS_IN_ANY_ORDER)):
        raise CandidateFailed(Status.NONDETERMINISTIC, "right at first, wrong when the same call was repeated")
    series.note("not the same bits each time: its atomic operations add in another order (each result was right)")
