"""A result is a tensor of its own: its memory is neither an input's nor that of a result returned before.

Rests on evidence: only the candidate's process knows where its tensors lie. Catches: a view of an input returned as
the result; one buffer returned by every call. Scratch buffers kept between calls are fine as long as they are not
returned. Cannot catch: a process that lies about its storage. What such a buffer does to earlier results is seen by
`earlier_result`.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status


def own_storage(call: Call) -> None:
    """Raises CandidateFailed saying what the result shares its memory with."""
    for index, found in enumerate(call.seen("results")):
        if found.get("aliases") and call.in_place.get(str(found["aliases"])) == index:
            continue  # the op promises this one in place
        if found.get("aliases"):
            message = f"the result shares its memory with input {found['aliases']!s:.40}; return a new tensor"
            raise CandidateFailed(Status.WRONG_SHAPE, message)
        if found.get("earlier"):
            message = "the result lies in the memory of an earlier result, which it overwrites; return a new tensor"
            raise CandidateFailed(Status.WRONG_SHAPE, message)
        if found.get("attributes"):
            message = f"the result carries attributes of its own ({found['attributes']!s:.120}); return a plain tensor"
            raise CandidateFailed(Status.WRONG_SHAPE, message)
