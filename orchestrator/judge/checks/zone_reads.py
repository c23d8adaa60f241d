"""The result does not depend on what lies beside the inputs.

Catches: a load outside an input that reaches the result: it changes with the red zones' content.
Cannot catch: a load outside whose value is masked away, or one further out than the zones.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.records import Status

_OTHER_FILL = 0x3F  # about 0.75 as a float of any width, a large positive integer


def zone_reads(series: Series) -> None:
    """Raises CandidateFailed where other bytes beside the inputs give another result."""
    first = series.first
    if not series.repeats(series.proxy.ask(first.inputs, first.parameters, fill=_OTHER_FILL)):
        message = "the result changes with the bytes beside the inputs: the kernel reads outside them"
        raise CandidateFailed(Status.OUT_OF_BOUNDS, message)
