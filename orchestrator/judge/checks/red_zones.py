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
from orchestrator.judge.memory import counts, gaps_in, zones_in
from orchestrator.records import Status

_SIDES = ("before", "after", "between the rows of")


def red_zones(call: Call) -> None:
    """Raises CandidateFailed naming the input and the side."""
    if call.intact:
        return
    beside = [
        (f"{side} input {name}", zone)
        for name, place in call.regions.items()
        for side, zone in zip(_SIDES, (*zones_in(*place), gaps_in(*place)), strict=True)
        if zone.numel()
    ]
    for (where, _), written in zip(beside, counts([zone != call.fill for _, zone in beside]), strict=True):
        if written:
            raise CandidateFailed(Status.OUT_OF_BOUNDS, f"wrote {written} bytes {where}, outside the tensor")
