"""Each configuration of an autotuned kernel is right, not only the one that was chosen.

Only in the interpreter, where no clock means anything and the first configuration is run; on a GPU the autotuner
itself runs them all, and the one that wins there is compared.
Catches: a configuration whose block is too small for the row, which another machine's clock may choose; asked at the
case's size and at a large one, where every block is too small.
Cannot catch: a configuration that pruning takes away here, and at the large size one for which the time is up.
"""

from __future__ import annotations

import itertools
import time

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.records import Status

_MOST = 32  # configurations that are tried
_ELEMENTS = 1 << 18  # of the large call
_SECONDS = 5.0  # for all of them


def every_configuration(series: Series) -> None:
    """Raises CandidateFailed naming the first configuration that is wrong, counted as the decorator lists them."""
    if series.device != "cpu" or not series.once or b"autotune" not in series.proxy.kernel.read_bytes():
        return
    sizes = [series, series.largest(_ELEMENTS)]  # before they are counted: pruning may leave more at one of them
    count = min(series.proxy.configurations(), _MOST)
    try:
        end = time.monotonic() + _SECONDS
        for one, index in itertools.product(sizes, range(1, count)):
            if one is not series and time.monotonic() > end:
                series.note(f"autotune configurations from {index} on were not tried at the large size")
                break
            series.proxy.choose_configuration(index)
            if not one.right(one.first.inputs):
                message = f"wrong with autotune configuration {index} of {count}, counted from 0 after pruning"
                raise CandidateFailed(Status.WRONG_VALUES, message)
    finally:
        if count > 1:
            series.proxy.choose_configuration(0)
