"""The ledger: what a run enters step by step is what git and the run's folder say of it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, finish, ledger, standing
from orchestrator.agents import Request
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.ledger import NAME, TABLES, Entering, Ledger, Row
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Decision, Judging, Reply, Run, Status, Usage
from orchestrator.standing import Standing
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key


class Answering:
    """An agent with one answer."""

    name = "answering"

    async def propose(self, request: Request) -> Reply:
        text = f"```python rmsnorm_triton.py\n{zoo_kernel('good').decode().strip()}\n```\n"
        return Reply(text, "model", Usage(0.25, 60, 40, cost_usd=0.5))


class WithoutGpu(ScriptedJudge):
    """One that says that nothing can be measured."""

    async def start(self) -> Judging:
        return replace(await super().start(), interpreted=True)


def rows(workspaces: Path) -> dict[str, list[Row]]:
    index = Ledger(workspaces)
    try:
        return {table: index.rows(table) for table in TABLES}
    finally:
        index.close()


async def unmeasured(op: Op, workspaces: Path) -> Run:
    scripts = {key(zoo_kernel("good")): Script(Status.PASSED)}
    index = Ledger(workspaces)
    judge = WithoutGpu(scripts, workspaces / "spent.log")
    try:
        return await run_op(op, Answering(), judge, config.load(), workspaces, Entering(index))
    finally:
        index.close()


async def test_where_an_op_stands_is_read_off_the_ledger_and_git(
    rmsnorm: Op, small_rmsnorm: Op, tmp_path: Path
) -> None:
    assert standing.of([rmsnorm], tmp_path / "none") == {"rmsnorm": Standing()} and not (tmp_path / "none").exists()
    run = await unmeasured(rmsnorm, tmp_path)
    day = run.started[:10]
    assert standing.of([rmsnorm], tmp_path)["rmsnorm"] == Standing("correct", "-", f"UNMEASURED {day}")
    index = Ledger(tmp_path)
    try:
        merged = finish.adopt(finish.find(run.id, tmp_path, lambda _: rmsnorm), "it is good", Entering(index))
        (decision,) = index.rows("decisions")
    finally:
        index.close()
    assert merged.verdict is not None and decision["merge_commit"]
    found = standing.of([rmsnorm], tmp_path)["rmsnorm"]
    assert found == Standing("correct", str(decision["merge_commit"])[:12], f"MERGE {day}")


async def test_rebuilding_changes_nothing(rmsnorm: Op, tmp_path: Path) -> None:
    run = await unmeasured(rmsnorm, tmp_path)
    entered = rows(tmp_path)
    (call,), (verdict,), (decision,) = (entered[table] for table in ("model_calls", "verdicts", "decisions"))
    assert (call["answered"], call["output_tokens"], call["cost_usd"]) == (1, 40, 0.5)
    assert (verdict["status"], decision["decision"]) == ("PASSED", "UNMEASURED")
    assert entered["attempts"][0]["git_commit"] == run.attempts[0].commit
    assert ledger.rebuild(tmp_path).runs == 1 and rows(tmp_path) == entered


async def test_a_run_that_is_measured_later_is_entered_too(rmsnorm: Op, tmp_path: Path) -> None:
    run = await unmeasured(rmsnorm, tmp_path)
    index = Ledger(tmp_path)
    judge = ScriptedJudge({key(zoo_kernel("good")): Script(Status.PASSED)}, tmp_path / "spent.log")
    ended = finish.find(run.id, tmp_path, lambda name: rmsnorm)
    finished = await finish.measure(ended, judge, config.load(), Entering(index))
    index.close()
    assert finished.verdict is not None and finished.verdict.decision is Decision.MERGE
    entered = rows(tmp_path)
    assert entered["decisions"][0]["merge_commit"] and entered["decisions"][0]["speedup_low"] == pytest.approx(1.25)
    assert entered["measurements"][0]["attempt"] == 1 and entered["environments"][0]["interpreted"] == 0
    ledger.rebuild(tmp_path)
    assert rows(tmp_path) == entered


async def test_a_lost_or_damaged_ledger_is_made_again(rmsnorm: Op, tmp_path: Path) -> None:
    await unmeasured(rmsnorm, tmp_path)
    entered = rows(tmp_path)
    (tmp_path / NAME).unlink()
    ledger.rebuild(tmp_path)
    assert rows(tmp_path) == entered
    (tmp_path / NAME).write_bytes(b"not a database, but as long as the header of one would be" * 40)
    with pytest.raises(WorkspaceError, match="ledger rebuild"):
        Ledger(tmp_path)
    ledger.rebuild(tmp_path)
    assert rows(tmp_path) == entered


async def test_a_run_that_cannot_be_read_is_named_and_left_out(rmsnorm: Op, tmp_path: Path) -> None:
    run = await unmeasured(rmsnorm, tmp_path)
    broken = tmp_path / "runs" / "rmsnorm-broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    made = ledger.rebuild(tmp_path)
    assert made.runs == 1 and made.unreadable[0].startswith("rmsnorm-broken: ")
    assert [row["run"] for row in rows(tmp_path)["runs"]] == [run.id]


def test_an_empty_file_is_brought_up_to_date_and_a_newer_one_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    assert rows(tmp_path)["runs"] == []
    base = sqlite3.connect(tmp_path / NAME)
    assert base.execute("PRAGMA user_version").fetchone() == (ledger.VERSION,)
    base.execute(f"PRAGMA user_version = {ledger.VERSION + 1}")
    base.close()
    with pytest.raises(UsageError, match="move the file away"):
        Ledger(tmp_path)
    with pytest.raises(UsageError, match="move the file away"):
        ledger.rebuild(tmp_path)


@pytest.mark.parametrize("entered", ["ab", "ba"])
def test_of_two_runs_that_began_at_once_the_newest_is_the_one_of_the_later_id(entered: str, tmp_path: Path) -> None:
    index, began = Ledger(tmp_path), "2026-01-01T00:00:00+00:00"
    for run in entered:
        about = {"op": "rmsnorm", "branch": "", "baseline": "", "started": began, "agent": "", "error": ""}
        index.put("runs", {"run": run, **about, "seconds": 1.0})
        index.put("decisions", {"run": run, "decision": f"of {run}", "reason": ""})
    assert index.newest()["rmsnorm"].decision == "of b"
    index.close()


def test_several_writes_are_whole_or_not_at_all(tmp_path: Path) -> None:
    index = Ledger(tmp_path)
    with pytest.raises(KeyboardInterrupt), index.whole():
        index.put("decisions", {"run": "a", "decision": "MERGE", "reason": ""})
        raise KeyboardInterrupt
    assert index.rows("decisions") == []
    index.close()
