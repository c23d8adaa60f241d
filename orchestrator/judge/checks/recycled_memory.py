"""The result does not depend on what allocated memory held before.

Catches: a memory of earlier results kept in scratch that is allocated anew in every call, and that torch's allocator
hands out again as the last call left it. Elsewhere in the judge such memory is poisoned, so that nothing would be found
in it. One element in the middle is changed between the two calls, so that a result recognised by a few others is stale.
Cannot catch: a fingerprint of all elements, which costs what computing costs.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.changed_element import changeable, with_one_changed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status


def recycled_memory(series: Series) -> None:
    """Raises CandidateFailed where a call in the memory of another call is not like the same call elsewhere."""
    name = next((name for name, tensor in series.first.inputs.items() if changeable(tensor)), None)
    if name is None:
        return
    changed = with_one_changed(series, name)
    elsewhere = series.proxy.ask(changed, series.first.parameters)
    series.proxy.ask_in(Way.RECYCLED, series.first)
    again = series.proxy.ask_in(Way.RECYCLED, elsewhere)
    if not series.agree(again.value, elsewhere.value):
        message = f"wrong where allocations hold what an earlier call left in them ({name} differs by one element)"
        raise CandidateFailed(Status.WRONG_VALUES, message)
