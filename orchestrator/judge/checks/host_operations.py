"""Host code computes nothing with torch.

Rests on evidence: a dispatch mode in the candidate's process records which operations its host code runs, also in grid
functions, hooks and heuristics. What Triton itself dispatches does not count.
Catches: work done by torch that the policy did not see.
Cannot catch: operations run behind the dispatcher's back, or by a process that lies.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status


def host_operations(call: Call) -> None:
    """Raises CandidateFailed naming the first operation and its line. Grey operations are the policy's to judge."""
    for found in call.seen("operations"):
        if not found.get("grey"):
            where = f"line {found.get('line')!s:.10}: {found.get('text')!s:.160}"
            message = f"the host computes with torch ({found.get('name')!s:.60}), {where}"
            raise CandidateFailed(Status.FALLBACK, message)
