"""A kernel that leaves num_warps open is right with more warps than Triton's default.

Only on a GPU: Triton's interpreter has no warps.
Catches: a race between the warps of a program that the default number happens not to lose; a kernel that counts on the
layout which that number gives. Other bits are no fault, because another number of warps adds in another order.
Cannot catch: a race in a kernel that names its number of warps.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status


def other_warps(series: Series) -> None:
    """Raises CandidateFailed where the result with another number of warps is not within the tolerance."""
    if series.device == "cpu" or not series.once:
        return
    if not series.agree(series.proxy.ask_in(Way.REWARPED, series.first).value, series.first.value):
        message = "right with Triton's default num_warps, wrong with another: the warps of a program race"
        raise CandidateFailed(Status.NONDETERMINISTIC, message)
