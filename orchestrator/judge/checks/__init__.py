"""One property a file: what it catches, what it cannot.

A check of a call gets a Call and raises CandidateFailed. It rests on what the judge holds where the judge can look;
what the candidate's own process says (`Call.evidence`) may convict and never acquits, so a check that rests on it
says so. A check of a series makes further calls on a few cases.

`CALL` and `SERIES` name all there are, in the order in which they are made. A check that is switched off (Job.skip)
is named in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.memory import Slot
from orchestrator.records import Status


@dataclass(frozen=True)
class Call:
    """One call, as the judge knows it."""

    before: Mapping[str, torch.Tensor]  # private copies of the inputs
    intact: bool  # the shared buffer holds what it held before, every byte; where not, the regions say what
    regions: Mapping[str, tuple[torch.Tensor, Slot]]  # the inputs' bytes in the shared buffer afterwards, with zones
    fill: int  # the value of the zones' bytes
    results: tuple[torch.Tensor, ...]  # private copies
    evidence: Mapping[str, Any]  # what the candidate's process saw; never acquits
    in_place: Mapping[str, int]  # inputs that the op has overwritten: by which result
    allowed: tuple[str, ...] = ()  # operations of torch that the op allows the host code

    def seen(self, kind: str) -> list[Mapping[str, Any]]:
        """A list of the evidence."""
        return listed(self.evidence, kind)


def listed(evidence: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """A list of some evidence. One that is no list of objects was not written by our worker."""
    found = evidence.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise CandidateFailed(Status.TAMPERED, f"the candidate interfered with the judge: its {kind} are malformed")
    return found


CallCheck = Callable[[Call], None]
