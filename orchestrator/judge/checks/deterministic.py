"""The same values give the same bits.

Catches: races, atomics in changing order, a result that depends on what was asked before.
Cannot catch: a race that this machine does not lose; Triton's interpreter runs programs in order and loses none.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series, identical
from orchestrator.records import Status

_REPEATS = 2


def deterministic(series: Series) -> None:
    """Raises CandidateFailed where a repeated call differs by a bit."""
    first = series.first
    for _ in range(_REPEATS):
        if not identical(series.proxy.ask(first.inputs, first.parameters).results, first.results):
            raise CandidateFailed(Status.NONDETERMINISTIC, "the same call gave other bits when it was repeated")
