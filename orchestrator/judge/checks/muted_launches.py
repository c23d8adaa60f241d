"""Without its launches the call does not give the right result.

Rests on evidence of a kind: the launches are muted in the candidate's process.
Catches: a decoy, a kernel that is launched while the result comes from elsewhere.
Cannot catch: a kernel that only copies a result computed elsewhere; `host_operations` and the policy see that.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status


def muted_launches(series: Series) -> None:
    """Raises CandidateFailed where the result is right although no kernel ran."""
    try:
        muted = series.proxy.ask_in(Way.MUTED, series.first)
    except CandidateFailed as failed:
        if failed.status is Status.RUNTIME_ERROR:
            return  # host code that trips over what the kernel did not write needs the kernel
        raise
    if any(result.isfinite().any() and result.any() for result in series.first.results) and series.agree(
        muted.value, series.first.value
    ):
        raise CandidateFailed(
            Status.FALLBACK, "the result is right although the kernel did not run: its launch is a decoy"
        )
