"""Nothing beside the inputs and the candidate's own allocations is read, not even to be thrown away.

Only in the interpreter, and rests on evidence: loads are watched in the candidate's process. Catches: a load without a
mask whose lanes beyond the tensor are masked away afterwards, which on a GPU may be an illegal address.
Cannot catch: the same on a GPU, where only what reaches the result shows (`zone_reads`); a load further out than zones.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import listed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status


def guarded_loads(series: Series) -> None:
    """Raises CandidateFailed naming the tensor beside which the kernel reads, and the side."""
    if series.device != "cpu":
        return
    for found in listed(series.proxy.ask_in(Way.GUARDED, series.first).returned.evidence, "loads"):
        message = f"loads {found.get('elements')!s:.20} elements {found.get('where')!s:.140}, outside it; mask the load"
        raise CandidateFailed(Status.OUT_OF_BOUNDS, message)
