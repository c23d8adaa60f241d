"""What became of an op in a batch, and what a batch comes to.

Owns the words for an op that has no decision, the row of the table at the end, and the exit code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import BudgetSpent, InfrastructureError, OrchestratorError
from orchestrator.ledger import Ledger, Row
from orchestrator.records import Decision, Record, Status

UNDONE, REFUSED, FAILED = "UNDONE", "REFUSED", "FAILED"  # beside the decisions
_FASTER = (0.5, 1.0, 1.5, 2.0)
_ACCEPTED = (Decision.MERGE, Decision.UNMEASURED)


@dataclass(frozen=True)
class Outcome(Record):
    """One op. Tokens and cost are None where a reply did not say; a replayed recording cost nothing."""

    op: str
    run: str
    decision: str  # or UNDONE: budget or replies ended; REFUSED: the op is not fit; FAILED: our machinery
    reason: str
    rounds: int = 0
    tokens: int | None = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    passed: bool = False  # whether a kernel passed
    speedup: float | None = None  # over the fastest baseline, the middle of its interval; None where not measured

    @property
    def accepted(self) -> bool:
        """Merged, or correct where nothing can be measured."""
        return self.decision in _ACCEPTED

    @property
    def undone(self) -> bool:
        """Whether there is something left to do for this op."""
        return self.decision in (UNDONE, REFUSED, FAILED)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        tokens = "" if self.tokens is None else str(self.tokens)
        usd = "" if self.usd is None else f"{self.usd:.4f}"
        return (self.op, self.decision, str(self.rounds), tokens, usd, f"{self.seconds:.1f}")


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 all accepted, 1 some not, 3 some failed by our machinery."""
    if any(one.decision == FAILED for one in outcomes):
        return 3
    return int(not all(one.accepted for one in outcomes))


def fast(outcomes: Sequence[Outcome]) -> str:
    """The share of all ops whose kernel is correct and more than p times as fast as the fastest baseline: fast_p."""
    measured = [one.speedup for one in outcomes if one.passed and one.speedup is not None]
    shares = {0.0: sum(one.passed for one in outcomes)}
    if measured:
        shares |= {p: sum(speedup > p for speedup in measured) for p in _FASTER}
    said = ", ".join(f"fast_{p:g} {count / len(outcomes):.2f}" for p, count in shares.items())
    unmeasured = shares[0.0] - len(measured)
    return f"{said} of {len(outcomes)} ops" + (f"; {unmeasured} correct, not measured" if unmeasured else "")


def of_decided(ledger: Ledger, op: str, run: str) -> Outcome | None:
    """That of a run that is over, by the ledger; None where it is not, or the ledger does not know.

    The ledger's rows follow the record on disk, so a run that is over there is over. A kernel that is to be merged and
    is not yet has no outcome.
    """
    decisions, runs = ledger.rows("decisions", run), ledger.rows("runs", run)
    if not decisions or not runs or runs[0]["error"]:
        return None
    decision = decisions[0]
    if decision["decision"] == Decision.MERGE and not decision["merge_commit"]:
        return None
    return _with_costs(ledger, Outcome(op, run, str(decision["decision"]), str(decision["reason"])))


def of_error(ledger: Ledger, op: str, run: str, error: OrchestratorError, *, unanswered: bool) -> Outcome:
    """That of an op that ended without a decision."""
    undone = unanswered or isinstance(error, BudgetSpent)
    kind = UNDONE if undone else FAILED if isinstance(error, InfrastructureError) else REFUSED
    return _with_costs(ledger, Outcome(op, run, kind, str(error)))


def _with_costs(ledger: Ledger, outcome: Outcome) -> Outcome:
    calls = [row for row in ledger.rows("model_calls", outcome.run) if row["answered"]]
    made = [row for row in calls if row["requests"]]
    runs = ledger.rows("runs", outcome.run)
    return Outcome(
        outcome.op,
        outcome.run,
        outcome.decision,
        outcome.reason,
        rounds=sum(bool(row["round"]) for row in calls),  # round 0 asks nobody
        tokens=_tokens(made),
        usd=_sum([row["cost_usd"] for row in made]),
        seconds=_number(runs[0]["seconds"]) if runs else 0.0,
        passed=any(row["status"] == Status.PASSED for row in ledger.rows("verdicts", outcome.run)),
        speedup=_speedup(ledger.rows("decisions", outcome.run)),
    )


def _speedup(decisions: Sequence[Row]) -> float | None:
    low, high = (decisions[0]["speedup_low"], decisions[0]["speedup_high"]) if decisions else (None, None)
    return None if low is None or high is None else math.sqrt(_number(low) * _number(high))


def _tokens(calls: Sequence[Row]) -> int | None:
    total = _sum([row[name] for row in calls for name in ("input_tokens", "output_tokens")])
    return None if total is None else int(total)


def _sum(values: Sequence[str | int | float | None]) -> float | None:
    return None if None in values else sum(map(_number, values), 0.0)


def _number(value: str | int | float | None) -> float:
    assert isinstance(value, int | float)
    return float(value)
