"""A result keeps its values when the kernel is called again.

Catches: one output buffer handed out by every call: the next call overwrites what the caller still holds.
A result that the op promises in place lies in an input, whose memory is the judge's to use again.
Cannot catch: more buffers used in turn than calls are looked back at.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series, identical
from orchestrator.records import Status


def earlier_result(series: Series) -> None:
    """Raises CandidateFailed where the result of a call has changed after the next."""
    first = series.first
    earlier = series.proxy.ask(first.inputs, first.parameters)
    series.proxy.ask(series.fresh_inputs(), first.parameters)
    kept = [index for index in range(len(earlier.results)) if index not in series.proxy.in_place.values()]
    again = series.proxy.fetch_again(earlier)
    if not identical(tuple(again[index] for index in kept), tuple(earlier.results[index] for index in kept)):
        raise CandidateFailed(Status.WRONG_VALUES, "the result of a call changed when the kernel was called again")
