"""For which ops a night generates, and in which order: one pure function over what is known of each op.

Owns the reasons and their order. What there is to gain is 1 less the share of the roofline; of an op without a champion
that was timed, all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.records import Decision, Record

# What is no failure of a run: kept, honestly given up, or waiting for a machine that can measure it.
_SETTLED = (Decision.MERGE, Decision.ABANDON, Decision.UNMEASURED)


class Reason(StrEnum):
    """Why an op is due."""

    NEW = "new"  # nothing was ever tried
    FAILED = "failed"  # its champion fell, or its last run brought nothing that passed
    CHANGED = "changed"  # its specification is not that of main
    HEADROOM = "headroom"  # its champion is below the share of the roofline that is enough


@dataclass(frozen=True)
class Known(Record):
    """What a night knows of an op."""

    op: str
    last: str | None  # decision of its newest run; '' where that ended without one; None where there was no run
    champion: bool  # holding tonight
    fell: bool  # its champion fell, tonight or earlier, and nothing has been tried since
    changed: bool
    share: float | None = None  # of the roofline, timed tonight
    enough: float = 1.0


@dataclass(frozen=True)
class Due(Record):
    """An op to generate for."""

    op: str
    reason: Reason
    headroom: float


def due(known: Sequence[Known], wanted: Collection[Reason]) -> tuple[Due, ...]:
    """The ops to generate for, most headroom first; equals in the order in which they are known."""
    found = [
        Due(one.op, reason, 1.0 if one.share is None else 1 - one.share)
        for one in known
        if (reason := _reason(one)) in wanted and reason is not None
    ]
    return tuple(sorted(found, key=lambda one: -one.headroom))


def _reason(one: Known) -> Reason | None:
    """The first that holds."""
    table = (
        (one.last is None and not one.champion and not one.fell, Reason.NEW),
        (one.changed, Reason.CHANGED),
        (one.fell, Reason.FAILED),
        (not one.champion and one.last not in _SETTLED, Reason.FAILED),
        (one.champion and one.share is not None and one.share < one.enough, Reason.HEADROOM),
    )
    return next((reason for holds, reason in table if holds), None)
