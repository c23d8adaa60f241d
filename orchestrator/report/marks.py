"""How statuses, decisions and amounts read: the same word, tone and unit on every page.

A tone is a colour of the stylesheet. It never stands alone: the word is always there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.records import Decision, Measurement, Run, Status, Usage

_STATUS_TONES = {Status.PASSED: "good", Status.INFRASTRUCTURE: "mute", Status.NO_CODE: "mute"}
_REFUSED = (Status.TAMPERED, Status.FORBIDDEN, Status.FALLBACK)
_DECISION_TONES = {
    Decision.MERGE: "good",
    Decision.UNMEASURED: "calm",
    Decision.REWORK: "calm",
    Decision.ABANDON: "mute",
    Decision.ESCALATE: "warn",
    Decision.REJECT: "bad",
}
ACCEPTED = (Decision.MERGE, Decision.UNMEASURED)


@dataclass(frozen=True)
class Mark:
    """A word with its tone."""

    word: str
    tone: str


def status(one: Status) -> Mark:
    """That of an attempt or a case."""
    return Mark(str(one), _STATUS_TONES.get(one, "warn" if one in _REFUSED else "bad"))


def decision(run: Run) -> Mark:
    """That of a run; of one that has none, why."""
    if run.error:
        return Mark("FAILED", "bad")
    if run.verdict is None:
        return Mark("UNDECIDED", "mute")
    return Mark(str(run.verdict.decision), _DECISION_TONES[run.verdict.decision])


def speedup(found: Measurement | None) -> str:
    """The interval of a speedup and what it is over."""
    if found is None:
        return "not measured"
    return f"{found.speedup_low:.3f} to {found.speedup_high:.3f} × {found.baseline}"


def share(part: float | None) -> str:
    """A fraction as a percentage; "" where it is unknown."""
    return "" if part is None else f"{100 * part:.0f} %"


def tokens(usages: Iterable[Usage]) -> str:
    """Tokens in and out; says so where a reply did not say. A recording that was replayed cost nothing."""
    asked = [one for one in usages if one.requests]
    known = [one for one in asked if one.output_tokens is not None]
    if not asked:
        return "none, replayed"
    if not known:
        return "not told"
    sent, received = (sum(getattr(one, name) or 0 for one in known) for name in ("input_tokens", "output_tokens"))
    missing = f", {len(asked) - len(known)} not told" if len(known) < len(asked) else ""
    return f"{sent:,} in, {received:,} out{missing}"


def cost(usages: Iterable[Usage]) -> str:
    """What the calls cost; says so where a price is unknown."""
    asked = [one for one in usages if one.requests]
    priced = [one.cost_usd for one in asked if one.cost_usd is not None]
    if len(priced) < len(asked):
        return "price unknown" if not priced else f"{sum(priced):.4f} USD and more"
    return f"{sum(priced):.4f} USD"


def day(started: str) -> str:
    """A moment, ISO 8601 in UTC, as a person reads it: to the second."""
    return re.sub(r"(\.\d+)?\+00:00", " UTC", started.replace("T", " "))
