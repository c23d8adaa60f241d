"""A kernel of the file is launched, with at least one program, in every call that returns something.

Where an input is empty, zeros need no kernel: a sum of nothing, as a host function allocates it.
Rests on evidence: launches are counted in the candidate's process.
Catches: a branch that never reaches the kernel; a grid of size zero.
Cannot catch: a launch whose result is not used; `muted_launches` sees that.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status


def launches(call: Call) -> None:
    """Raises CandidateFailed where no program of an own kernel ran."""
    nothing = any(not tensor.numel() for tensor in call.before.values())
    if not any(result.numel() and not (nothing and not result.any()) for result in call.results):
        return
    own = [found for found in call.seen("launches") if found.get("own")]
    if not own:
        raise CandidateFailed(Status.FALLBACK, "no kernel of this file was launched in this call")
    if not any(found.get("programs") for found in own):
        message = f"kernel {own[0].get('kernel')!s:.60} was launched on an empty grid: no program ran"
        raise CandidateFailed(Status.FALLBACK, message)
