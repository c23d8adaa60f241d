"""The same call again leaves what the kernel file keeps as it was.

Rests on evidence: the fingerprints of the file's globals are taken in the candidate's process.
Catches: a count of calls, on the host or in memory that is kept, which may decide after any number of calls that
nothing need be computed: the judge cannot make so many calls as a measurement, or a user, does.
Cannot catch: a count kept where the witness does not look (a library's object), and one that is a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.proxy import Exchange
from orchestrator.records import Status


def steady_state(series: Series) -> None:
    """Raises CandidateFailed naming the global that the third of three calls alike left different."""
    _, before, after = map(_kept, series.again())
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed:
        message = f"the same call again left the global {changed[0]!s:.80} different: the file counts its calls"
        raise CandidateFailed(Status.FORBIDDEN, message)


def _kept(call: Exchange) -> Mapping[str, Any]:
    kept = call.returned.evidence.get("kept", {})
    if not isinstance(kept, dict):
        raise CandidateFailed(Status.TAMPERED, "the candidate interfered with the judge: its globals are malformed")
    return kept
