"""Other values at the same addresses give other results, and the right ones.

Catches: a result remembered by address, by shape, or by "this was asked before"; only the first call of a shape
computed. Cannot catch: a memory keyed by the values themselves, which is right (and is no use to it, since values are
never repeated but by `deterministic`).
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.records import Status


def fresh_values(series: Series) -> None:
    """Raises CandidateFailed where the second call of a shape is wrong."""
    if not series.right(series.fresh_inputs()):
        message = "right for the first values of this shape, wrong for other values at the same addresses"
        raise CandidateFailed(Status.WRONG_VALUES, message)
