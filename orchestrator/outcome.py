"""What became of an op in a batch, and what a batch comes to.

Owns the words for an op that has no decision, the row of the table at the end, and the exit code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import ledger as ledgers
from orchestrator.errors import BudgetSpent, InfrastructureError, OrchestratorError
from orchestrator.ledger import Ledger, Row
from orchestrator.plan import Planned
from orchestrator.recorder import RUN
from orchestrator.records import Decision, Record, Run, Status, from_json
from orchestrator.workspace import Workspace

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


def decided(ledger: Ledger, planned: Sequence[Planned]) -> dict[str, Outcome]:
    """By op, the outcomes of those whose run is over, by the ledger.

    The ledger's rows follow the record on disk, so a run that is over there is over. A kernel that is to be merged and
    is not yet has no outcome.
    """
    ops = {one.run: one.op for one in planned}
    failed = {row["run"] for row in ledger.rows("runs", ops) if row["error"]}
    found = [
        Outcome(ops[str(row["run"])], str(row["run"]), str(row["decision"]), str(row["reason"]))
        for row in ledger.rows("decisions", ops)
        if row["run"] not in failed and (row["decision"] != Decision.MERGE or row["merge_commit"])
    ]
    return {one.op: one for one in _with_costs(ledger, found)}


def earlier(ledger: Ledger, planned: Sequence[Planned], workspaces: Path) -> dict[str, Outcome]:
    """By op, the outcomes of those that were over before this process began; their cost counts."""
    runs = workspaces / "runs"
    begun = [one for one in planned if (runs / one.run / RUN).is_file()]
    found = decided(ledger, begun)
    for one in begun:
        if one.op not in found and over(one.run, workspaces) is not None:
            ledgers.refresh(ledger, runs / one.run)  # killed between the record and its row
            found |= decided(ledger, [one])
    return found


def over(run_id: str, workspaces: Path) -> Run | None:
    """The run, where its record on disk says that nothing is left to do for it: decided, and merged if it is to be."""
    record = workspaces / "runs" / run_id / RUN
    run = from_json(Run, record.read_bytes()) if record.is_file() else None
    if run is None or run.verdict is None or run.error:
        return None
    if run.verdict.decision is not Decision.MERGE:
        return run
    return run if Workspace.open(workspaces, run.op).open_run(run.id).merge_commit() else None


def of_error(ledger: Ledger, planned: Planned, error: OrchestratorError, *, unanswered: bool) -> Outcome:
    """That of an op that ended without a decision."""
    undone = unanswered or isinstance(error, BudgetSpent)
    kind = UNDONE if undone else FAILED if isinstance(error, InfrastructureError) else REFUSED
    return _with_costs(ledger, [Outcome(planned.op, planned.run, kind, str(error))])[0]


def _with_costs(ledger: Ledger, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """With what the ledger knows of their runs. A question a table, however many runs there are."""
    runs = [one.run for one in outcomes]
    tables = {name: _by_run(ledger, name, runs) for name in ("model_calls", "verdicts", "decisions", "runs")}
    return [
        _with_cost(one, *(tables[name].get(one.run, []) for name in ("model_calls", "verdicts", "decisions", "runs")))
        for one in outcomes
    ]


def _by_run(ledger: Ledger, table: str, runs: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in ledger.rows(table, runs):
        found.setdefault(str(row["run"]), []).append(row)
    return found


def _with_cost(
    outcome: Outcome, calls: Sequence[Row], verdicts: Sequence[Row], decisions: Sequence[Row], runs: Sequence[Row]
) -> Outcome:
    answered = [row for row in calls if row["answered"]]
    made = [row for row in answered if row["requests"]]
    return replace(
        outcome,
        rounds=sum(bool(row["round"]) for row in answered),  # round 0 asks nobody
        tokens=_tokens(made),
        usd=_sum([row["cost_usd"] for row in made]),
        seconds=_number(runs[0]["seconds"]) if runs else 0.0,
        passed=any(row["status"] == Status.PASSED for row in verdicts),
        speedup=_speedup(decisions),
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
