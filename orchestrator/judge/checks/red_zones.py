"""Nothing beside an input was written.

The bytes on either side of it in the shared buffer, and between its rows where it is not contiguous, still hold what
the judge put there.

Catches: a store before the first or after the last element of an input.
Cannot catch: a store further away than the zone is wide, or one that writes the very value that stood there.
A load from a zone is `zone_reads`' business, a store beside an output `overruns`'.
"""

from __future__ import annotations

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.judge.memory import gaps_in, zones_in
from orchestrator.records import Status


def red_zones(call: Call) -> None:
    """Raises CandidateFailed naming the input and the side."""
    for name, (region, slot) in call.regions.items():
        beside = (*zones_in(region, slot), gaps_in(region, slot))
        for side, zone in zip(("before", "after", "between the rows of"), beside, strict=True):
            if written := int((zone != call.fill).sum()):
                message = f"wrote {written} bytes {side} input {name}, outside the tensor"
                raise CandidateFailed(Status.OUT_OF_BOUNDS, message)
