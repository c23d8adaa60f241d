"""Each configuration of an autotuned kernel is right, not only the one that was chosen.

Only in the interpreter, where no clock means anything and the first configuration is run; on a GPU the autotuner
itself runs them all, and the one that wins there is compared.
Catches: a configuration whose block is too small for the row, which another machine's clock may choose.
Cannot catch: a configuration that pruning takes away here.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.records import Status

_MOST = 32  # configurations that are tried


def every_configuration(series: Series) -> None:
    """Raises CandidateFailed naming the first configuration that is wrong, counted as the decorator lists them."""
    if series.device != "cpu" or not series.once:
        return
    count = min(series.proxy.configurations(), _MOST)
    try:
        for index in range(1, count):
            series.proxy.choose_configuration(index)
            if not series.right(series.first.inputs):
                message = f"wrong with autotune configuration {index} of {count}, counted from 0 after pruning"
                raise CandidateFailed(Status.WRONG_VALUES, message)
    finally:
        if count > 1:
            series.proxy.choose_configuration(0)
