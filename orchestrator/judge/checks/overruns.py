"""Nothing beside the candidate's own allocations was written.

Rests on evidence: the candidate's allocations are served with padding that holds canaries, in its own process.
Catches: a store before or behind an output or a scratch buffer.
Cannot catch: a store beyond the padding, or in a buffer that was made behind the allocator's back.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status


def overruns(call: Call) -> None:
    """Raises CandidateFailed naming the tensor and the side."""
    for found in call.seen("overruns"):
        where = f"{found.get('side')!s:.10} the tensor {found.get('tensor')!s:.120}"
        raise CandidateFailed(Status.OUT_OF_BOUNDS, f"wrote {found.get('bytes')!s:.20} bytes {where}, outside it")
