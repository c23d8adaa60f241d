"""Batches: what one comes to, what stops it, where it goes on.

Real git, ledger, clients and loop; most verdicts are scripted. The real judge's part, and the command line's, is in the
tests that start processes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator import ledger, plan, resources
from orchestrator.asking import Purse
from orchestrator.config import Budget
from orchestrator.errors import AgentUnusable, BudgetSpent, UsageError
from orchestrator.journal import Journal
from orchestrator.outcome import Outcome, exit_code
from orchestrator.records import Usage
from tests.agents.loopback import error, openai_events, serving, sse
from tests.conftest import zoo_kernel

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "benchmarks" / "kill_batches.py"
KNOWN = ("layernorm", "rmsnorm", "softmax")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def orchestrator(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    command = [sys.executable, "-m", "orchestrator", *arguments]
    environment |= {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def events(place: Path) -> list[dict[str, Any]]:
    (log,) = (place / "workspaces" / plan.FOLDER).glob(f"*/{plan.LOG}")
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_killed_batches_end_as_undisturbed_ones() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "2", "--ops", "1", "--seed", "7"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].startswith("PASS: 2 batches killed")


@pytest.mark.long
def test_killed_batches_that_ask_for_several_samples_end_as_undisturbed_ones() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "20", "--samples", "3"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.long
def test_more_killed_batches_end_as_undisturbed_ones() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT), "--kills", "20"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_op_comes_to_its_own_end(kill_batches: ModuleType, tmp_path: Path, place: Path) -> None:
    scenario = kill_batches.Scenario(tmp_path / "ops", 4)
    outcomes = kill_batches.carry_out(scenario, place)
    assert [(one.op, one.decision, one.rounds) for one in outcomes] == [
        *(("rmsnorm", "MERGE", 2), ("layernorm", "MERGE", 2), ("softmax", "REWORK", 2), ("vector_add", "ESCALATE", 3)),
    ]
    assert exit_code(outcomes) == 1
    again = kill_batches.carry_out(scenario, place)
    assert again == outcomes, "what is over is over"
    spent = kill_batches.spent(place)
    assert set(spent.values()) == {1}, "nothing was asked, judged or measured twice"
    noted = [(event["event"], event["op"], event["round"]) for event in events(place) if "round" in event]
    assert ("judged", "rmsnorm", 2) in noted and ("merged", "rmsnorm", 2) in noted


def test_a_budget_is_kept_and_what_is_left_is_listed(kill_batches: ModuleType, tmp_path: Path, place: Path) -> None:
    scenario = kill_batches.Scenario(tmp_path / "ops", 3)
    recorded = "agent.name=recorded"
    outcomes = kill_batches.carry_out(scenario, place, (recorded, "budget.batch.rounds=3"), concurrency=1)
    assert [one.decision for one in outcomes] == ["MERGE", "REWORK", "UNDONE"]
    assert outcomes[1].rounds == 1 and outcomes[2].rounds == 0
    assert outcomes[2].reason == "budget.batch.rounds of 3 is spent (3)" and outcomes[2].undone
    assert not (place / "workspaces" / "softmax.git").exists(), "an op for which nothing is left is not begun"
    later = kill_batches.carry_out(scenario, place, (recorded, "budget.batch.rounds=3"), concurrency=1)
    assert [one.decision for one in later] == ["MERGE", "REWORK", "UNDONE"], "what was spent before counts"
    more = kill_batches.carry_out(scenario, place, (recorded, "budget.batch.rounds=9"), concurrency=1)
    assert [one.decision for one in more] == ["MERGE", "REWORK", "REWORK"]


def test_a_budget_of_an_op(kill_batches: ModuleType, tmp_path: Path, place: Path) -> None:
    scenario = kill_batches.Scenario(tmp_path / "ops", 1)
    (one,) = kill_batches.carry_out(scenario, place, ("agent.name=recorded", "budget.op.rounds=1"))
    assert (one.decision, one.reason) == ("UNDONE", "budget.op.rounds of 1 is spent (1)")
    (one,) = kill_batches.carry_out(scenario, place)
    assert (one.decision, one.rounds) == ("MERGE", 2), "with budget it goes on where it stopped"
    assert set(kill_batches.spent(place).values()) == {1}


@pytest.mark.parametrize(
    ("limits", "usage", "said"),
    [
        (Budget(tokens=100), Usage(1.0, 60, 40), "budget.op.tokens of 100 is spent (100)"),
        (Budget(usd=0.5), Usage(1.0, 60, 40, cost_usd=0.5), "budget.op.usd of 0.5 is spent (0.5)"),
        (Budget(tokens=100), Usage(1.0), "budget.op.tokens cannot be kept"),
        (Budget(usd=0.5), Usage(1.0, 60, 40), "budget.op.usd cannot be kept"),
        (Budget(wall_s=1e-9), Usage(1.0), "budget.op.wall_s"),
    ],
)
def test_limits(limits: Budget, usage: Usage, said: str) -> None:
    purse = Purse("op", limits)
    purse.count(usage)
    with pytest.raises(BudgetSpent) as raised:
        purse.check()
    assert said in str(raised.value) and raised.value.exit_code == 1


def test_what_is_within_its_limits_goes_on() -> None:
    purse = Purse("op", Budget(rounds=2, tokens=101, usd=0.6, wall_s=60))
    purse.rounds = 1
    purse.count(Usage(1.0, 60, 40, cost_usd=0.5))
    purse.count(Usage(0.0, requests=0))  # a replayed recording says nothing of its cost, and has none
    purse.check()


def test_a_refused_key_stops_all_ops_with_one_message(
    kill_batches: ModuleType, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        server.answers = [error(401, "no such key") for _ in range(9)]
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        scenario = kill_batches.Scenario(tmp_path / "ops", 4)
        with pytest.raises(AgentUnusable, match="refused the key in OPENAI_API_KEY"):
            kill_batches.carry_out(scenario, place, ("agent.name=openai", "agent.model=m"), concurrency=3)
        assert 1 <= len(server.asked) <= 3, "those under way, and no more"


def test_a_provider_that_limits_the_rate_is_waited_for(
    kill_batches: ModuleType, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        kernel = zoo_kernel("good").decode().strip()
        reply = f"```python rmsnorm_triton.py\n{kernel}\n```\n"
        limited = error(429, "slow down", headers={"retry-after": "0"})
        counted = openai_events((reply,), usage={"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100})
        server.answers = [limited] * 8 + [sse(*counted)]  # more often than a single run would try
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        scenario = kill_batches.Scenario(tmp_path / "ops", 1)
        (one,) = kill_batches.carry_out(scenario, place, ("agent.name=openai", "agent.model=m"))
        assert (one.decision, one.rounds, one.tokens, one.usd) == ("MERGE", 1, 100, None)
        assert len(server.asked) == 9
        assert kill_batches.carry_out(scenario, place, ("agent.name=openai", "agent.model=m")) == (one,)
        assert len(server.asked) == 9, "a reply that is paid for is not asked for again"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 380 kB, where this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=380k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount anything")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)  # what a killed judge leaves open ends with it


@pytest.mark.root
def test_a_full_disk_fails_what_it_meets_and_the_rest_is_done_later(
    kill_batches: ModuleType, tmp_path: Path, small_disk: Path
) -> None:
    scenario = kill_batches.Scenario(tmp_path / "ops", 2)
    outcomes = kill_batches.carry_out(scenario, small_disk, concurrency=1)
    assert exit_code(outcomes) == 3 and outcomes[1].decision == "FAILED"
    assert "No space left on device" in outcomes[1].reason and "\n" not in outcomes[1].reason
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True)
    assert [one.decision for one in kill_batches.carry_out(scenario, small_disk)] == ["MERGE", "MERGE"]
    assert set(kill_batches.spent(small_disk).values()) == {1}
    entered = kill_batches.rows(small_disk / "workspaces")
    ledger.rebuild(small_disk / "workspaces")
    assert kill_batches.rows(small_disk / "workspaces") == entered


def test_exit_codes() -> None:
    merged, undone, failed = (Outcome("op", "run", how, "") for how in ("MERGE", "UNDONE", "FAILED"))
    assert [exit_code(some) for some in ((merged,), (merged, undone), (merged, undone, failed))] == [0, 1, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rmsnorm,sofmax,nope", "no op is called 'sofmax', 'nope'; did you mean softmax?"),
        ("rmsnorm, rmsnorm", "names rmsnorm more than once"),
        (",", "names no op"),
    ],
)
def test_ops_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan.named(text, lambda: KNOWN)
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- rmsnorm\n - x: [", "is not YAML"),
        ("rmsnorm: 1", "holds no list"),
        ("- 3", "entry 1: 3 is neither"),
        ("- loop: {rounds: 2}", "entry 1"),
        ("- rmsnorm\n- op: rmsnorm\n", "more than once"),
    ],
)
def test_ops_files_that_cannot_be(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "ops.yaml").write_text(text)
    with pytest.raises(UsageError) as raised:
        plan.read(tmp_path / "ops.yaml", lambda: KNOWN)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_all_ops_and_a_file_with_settings(tmp_path: Path) -> None:
    assert [one.op for one in plan.named("all", lambda: KNOWN)] == list(KNOWN)
    (tmp_path / "ops.yaml").write_text("- rmsnorm\n- op: softmax\n  loop: {rounds: 2}\n")
    wanted = (plan.Wanted("rmsnorm"), plan.Wanted("softmax", {"loop": {"rounds": 2}}))
    assert plan.read(tmp_path / "ops.yaml", lambda: KNOWN) == wanted


def test_the_newest_batch_is_the_one_begun_last_also_within_a_second(tmp_path: Path) -> None:
    begun = [plan.new([plan.Wanted("rmsnorm")]) for _ in range(12)]
    for todo in begun:
        plan.keep(todo, tmp_path)
    assert plan.newest(tmp_path) == begun[-1]
    runs = [todo.ops[0].run for todo in begun]
    assert runs == sorted(runs) and [todo.id for todo in begun] == sorted(todo.id for todo in begun)


def _hold(todo: plan.Plan, workspaces: Path, ready: Any, done: Any) -> None:
    with plan.held(todo, workspaces):
        ready.set()
        done.wait(30)


def test_a_batch_that_is_worked_on_is_left_alone(tmp_path: Path) -> None:
    todo = plan.new([plan.Wanted("rmsnorm")])
    plan.keep(todo, tmp_path)
    assert plan.newest(tmp_path) == todo
    spawn = multiprocessing.get_context("spawn")
    ready, done = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(todo, tmp_path, ready, done))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(UsageError, match="another process"), plan.held(todo, tmp_path):
            pass
    finally:
        done.set()
        process.join()
    with plan.held(todo, tmp_path):
        pass


def test_no_secret_is_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of.no.known.form")
    journal = Journal(tmp_path / "log.jsonl", batch="batch")
    said = 'HTTP 400: "of.no.known.form", sk-ant-0123456789abcdef0123, Authorization: Bearer xyz123'
    journal.event("op_ended", op="rmsnorm", reason=said)
    text = (tmp_path / "log.jsonl").read_text()
    assert not [part for part in ("of.no.known.form", "sk-ant-0123", "xyz123") if part in text]
    assert json.loads(text)["op"] == "rmsnorm"


def _refused(result: subprocess.CompletedProcess[str], code: int, said: str) -> None:
    lines = result.stderr.splitlines()
    assert result.returncode == code and len(lines) == 1 and said in lines[0], result.stdout + result.stderr


def test_what_the_command_line_refuses_before_anything_is_written(tmp_path: Path) -> None:
    _refused(orchestrator(tmp_path, "--ops", "all"), 2, "a batch needs a model")
    _refused(orchestrator(tmp_path, "--ops", "rmsnorm,nope", "--agent", "recorded"), 2, "'nope'")
    _refused(orchestrator(tmp_path, "--resume", "--agent", "recorded"), 2, "there is no batch")
    _refused(orchestrator(tmp_path, "--op", "rmsnorm", "--ops", "all"), 2, "give one of them")
    (tmp_path / "ops.yaml").write_text("- op: softmax\n  loop: {ronds: 2}\n")
    command = ("--ops-file", "ops.yaml", "--agent", "recorded")
    _refused(orchestrator(tmp_path, *command), 2, "loop.ronds is unknown; did you mean loop.rounds?")
    assert not (tmp_path / "workspaces").exists()


def test_a_foreign_history_and_a_newer_ledger_are_refused(tmp_path: Path) -> None:
    command = ("--ops", "rmsnorm", "--agent", "recorded", "--device", "cpu")
    workspaces = tmp_path / "workspaces"
    subprocess.run(["git", "init", "-q", "--bare", str(workspaces / "rmsnorm.git")], check=True)
    _refused(orchestrator(tmp_path, *command), 3, "not marked as the workspace of rmsnorm")
    assert sorted(path.name for path in workspaces.iterdir()) == ["rmsnorm.git", "rmsnorm.lock"]
    ledger.Ledger(tmp_path / "other").close()
    ledger.sqlite3.connect(tmp_path / "other" / ledger.NAME).execute(f"PRAGMA user_version = {ledger.VERSION + 1}")
    _refused(orchestrator(tmp_path, *command, "--workspaces", "other"), 2, f"has version {ledger.VERSION + 1}")
    assert not (tmp_path / "other" / "batches").exists()


def test_a_batch_with_the_real_judge(tmp_path: Path) -> None:
    shipped = resources.shipped("configs") / "ops" / "dropout"
    for name in ("op.yaml", "reference.py"):  # an op without replies
        (tmp_path / "ops" / "omission").mkdir(parents=True, exist_ok=True)
        (tmp_path / "ops" / "omission" / name).write_text((shipped / name).read_text().replace("dropout", "omission"))
    command = ("--ops", "rmsnorm,omission", "--agent", "recorded", "--device", "cpu", "--json", "--quiet")
    result = orchestrator(tmp_path, *command, "--judges", "2")
    assert result.returncode == 1, result.stderr
    rmsnorm, omission = json.loads(result.stdout)
    assert (rmsnorm["decision"], rmsnorm["rounds"], rmsnorm["tokens"]) == ("UNMEASURED", 1, 0)
    assert omission["decision"] == "UNDONE" and "no reply was recorded for omission" in omission["reason"]
    assert result.stderr.splitlines()[0].split() == ["op", "decision", "rounds", "tokens", "cost", "seconds"]
    again = orchestrator(tmp_path, "--resume", *command[2:])
    assert json.loads(again.stdout) == [rmsnorm, omission]
    rebuilt = orchestrator(tmp_path, "ledger", "rebuild")
    assert rebuilt.returncode == 0 and rebuilt.stdout.strip() == "workspaces/ledger.sqlite: 1 runs"
