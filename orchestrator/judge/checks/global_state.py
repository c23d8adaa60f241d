"""A call, and the import of the file, leave the process as they found it.

That is flags, random state, streams, patched functions, threads, descriptors, hooks.

Rests on evidence: the state is compared in the candidate's process.
Catches: what would make a later measurement, or a caller's program, behave differently.
Cannot catch: a change undone before the comparison. The judge's own process cannot be reached by any of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks import Call
from orchestrator.records import Status


def global_state(call: Call) -> None:
    """Raises CandidateFailed with the first difference."""
    unchanged(call.evidence.get("state", []), "the call")


def unchanged(differences: Any, what: str) -> None:
    """Raises CandidateFailed where `what` changed the state of its process. `differences` comes from the candidate."""
    if not isinstance(differences, Sequence) or isinstance(differences, str):
        raise CandidateFailed(Status.TAMPERED, "the candidate interfered with the judge: its state is malformed")
    if differences:
        raise CandidateFailed(Status.FORBIDDEN, f"{what} changed the process: {differences[0]!s:.200}")
