"""Where each op stands in the workspaces: how far its newest run came, what was decided, and whose kernel main holds.

Reads the ledger and git, and makes neither: what is not there is not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.ledger import NAME, Ledger, Row
from orchestrator.ops import Op
from orchestrator.workspace import Workspace

NOTHING = "-"


@dataclass(frozen=True)
class Standing:
    """Of one op; NOTHING where there is none."""

    stage: str = NOTHING  # of the newest run's last attempt
    champion: str = NOTHING  # the commit at which main got its kernel
    decision: str = NOTHING  # of the newest run, and its day


def of(ops: Sequence[Op], workspaces: Path) -> dict[str, Standing]:
    """By name."""
    newest, tables = _newest_runs(workspaces)
    return {
        op.name: Standing(
            stage=_stage(newest.get(op.name), tables["attempts"]),
            champion=_champion(op, workspaces),
            decision=_decision(newest.get(op.name), tables["decisions"]),
        )
        for op in ops
    }


def _newest_runs(workspaces: Path) -> tuple[dict[str, Row], dict[str, list[Row]]]:
    """The newest run of each op, and the tables that say more of it."""
    if not (workspaces / NAME).is_file():
        return {}, {"attempts": [], "decisions": []}
    ledger = Ledger(workspaces)
    try:
        runs = sorted(ledger.rows("runs"), key=lambda row: (str(row["started"]), str(row["run"])))
        return {str(row["op"]): row for row in runs}, {name: ledger.rows(name) for name in ("attempts", "decisions")}
    finally:
        ledger.close()


def _stage(run: Row | None, attempts: Sequence[Row]) -> str:
    stages = [str(row["stage"]) for row in attempts if run is not None and row["run"] == run["run"]]
    return stages[-1] if stages else NOTHING


def _decision(run: Row | None, decisions: Sequence[Row]) -> str:
    if run is None:
        return NOTHING
    decided = [str(row["decision"]) for row in decisions if row["run"] == run["run"]]
    said = "failed" if run["error"] else decided[0] if decided else "not decided"
    return f"{said} {str(run['started'])[:10]}"


def _champion(op: Op, workspaces: Path) -> str:
    if not (workspaces / f"{op.name}.git").is_dir():
        return NOTHING
    champion = Workspace.open(workspaces, op.name).champion(op.spec.kernel_name)
    return champion.commit[:12] if champion else NOTHING
