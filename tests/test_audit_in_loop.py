"""What the audit does to a run: a kernel that passes with an established fault goes back and is not merged.

Real git, guard, policy and audit; verdicts and times are scripted, because which kernels a judge lets through by luck
is not the point here.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator import config, finish, tried
from orchestrator.agents import Request
from orchestrator.attempt import REPORT
from orchestrator.errors import UsageError
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Decision, Reply, Run, Status, Usage, from_json, to_json
from orchestrator.terminal import Terminal
from orchestrator.watch import Silent
from orchestrator.workspace import Workspace
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key

pytestmark = pytest.mark.asyncio

GRAVE = zoo_kernel("divides_by_block")  # right where N is a power of two
SILENCED = GRAVE.replace(b"/ BLOCK + eps)", b"/ BLOCK + eps)  # audit: ignore divided-by-block N is a power of two")
GOOD = zoo_kernel("good")


class Replies:
    """An agent that gives these kernels in turn, and the last of them from then on."""

    name = "scripted"

    def __init__(self, *kernels: bytes) -> None:
        self._kernels = list(kernels)
        self.asked: list[str] = []

    async def propose(self, request: Request) -> Reply:
        self.asked.append(request.prompt.turns[-1].text)
        kernel = self._kernels.pop(0) if len(self._kernels) > 1 else self._kernels[0]
        return Reply(f"```python rmsnorm_triton.py\n{kernel.decode()}\n```\n", "scripted", Usage(0.0))


async def play(op: Op, tmp_path: Path, agent: Replies, *options: str) -> Run:
    judge = ScriptedJudge({key(one): Script(Status.PASSED) for one in (GRAVE, SILENCED, GOOD)}, tmp_path / "log")
    return await run_op(op, agent, judge, config.load(overrides=options), tmp_path / "workspaces", Silent())


def record(tmp_path: Path, run: Run) -> str:
    return (tmp_path / "workspaces" / "runs" / run.id / "DECISION.md").read_text()


async def test_an_established_fault_goes_back_and_the_repaired_kernel_is_merged(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Replies(GRAVE, GOOD)
    run = await play(rmsnorm, tmp_path, agent)
    assert [(one.status, one.report.accepted) for one in run.attempts] == [
        (Status.PASSED, False),
        (Status.PASSED, True),
    ]
    assert run.best == 2 and run.verdict is not None and run.verdict.decision is Decision.MERGE
    for told in (
        "but not accepted",
        "line 14 (divided-by-block)",
        "Instead:",
        "Repair each fault that the audit names",
    ):
        assert told in agent.asked[1], told
    assert "not accepted: line 14 (divided-by-block)" in record(tmp_path, run)
    branch = Workspace.open(tmp_path / "workspaces", "rmsnorm").open_run(run.id)
    told = tried.lines(run, branch, tmp_path / "workspaces" / "runs")
    assert told[0].startswith("correct: PASSED, not accepted: "), "a later run is told why it did not count"


async def test_a_person_sees_it_at_the_attempt(rmsnorm: Op, tmp_path: Path) -> None:
    run, screen = await play(rmsnorm, tmp_path, Replies(GRAVE), "loop.rounds=1"), io.StringIO()
    Terminal(Console(file=screen, width=200)).judged(run.attempts[0])
    assert "audit, high: line 14 (divided-by-block): " in screen.getvalue() and "instead: " in screen.getvalue()


async def test_nothing_else_within_the_rounds_is_for_a_person(rmsnorm: Op, tmp_path: Path) -> None:
    run = await play(rmsnorm, tmp_path, Replies(GRAVE), "loop.rounds=2")
    assert run.best is None and run.exit_code == 1
    assert run.verdict is not None and run.verdict.decision is Decision.ESCALATE
    assert "of attempt 2 the audit establishes divided-by-block in line 14" in run.verdict.reason
    assert Workspace.open(tmp_path / "workspaces", "rmsnorm").read_at(rmsnorm.spec.kernel_name, "main") is None


async def test_a_comment_of_the_candidate_silences_nothing(rmsnorm: Op, tmp_path: Path) -> None:
    run = await play(rmsnorm, tmp_path, Replies(SILENCED), "loop.rounds=1")
    assert run.best is None and [one.rule for one in run.attempts[0].report.grave] == ["divided-by-block"]


async def test_a_person_may_adopt_it_and_the_record_says_against_what(rmsnorm: Op, tmp_path: Path) -> None:
    run = await play(rmsnorm, tmp_path, Replies(GRAVE), "loop.rounds=1")
    ended = finish.find(run.id, tmp_path / "workspaces", lambda _: rmsnorm)
    with pytest.raises(UsageError, match="ended in ESCALATE"):
        await finish.measure(ended, ScriptedJudge({}, tmp_path / "log"), config.load(), Silent())
    adopted = finish.adopt(ended, "N is a power of two here", Silent())
    assert adopted.best == 1 and adopted.verdict is not None and adopted.verdict.decision is Decision.MERGE
    assert "although of attempt 1 the audit establishes divided-by-block in line 14" in record(tmp_path, run)


class KeptBefore(Replies):
    """A run whose verdict was kept by an orchestrator that knew no such rule."""

    async def propose(self, request: Request) -> Reply:
        judge = await play(self.op, request.folder / "elsewhere", Replies(GRAVE), "loop.rounds=1")
        (request.folder / REPORT).write_text(to_json(replace(judge.attempts[0].report, audit=())))
        return await super().propose(request)

    def __init__(self, op: Op) -> None:
        super().__init__(GRAVE)
        self.op = op


async def test_what_is_merged_was_audited_a_moment_ago(rmsnorm: Op, tmp_path: Path) -> None:
    run = await play(rmsnorm, tmp_path, KeptBefore(rmsnorm), "loop.rounds=1", "loop.stages=[correct]")
    assert run.best == 1 and run.measurement is not None, "its kept report has nothing against it"
    assert run.verdict is not None and run.verdict.decision is Decision.ESCALATE
    assert "Not merged, because of attempt 1 the audit establishes divided-by-block" in run.verdict.reason
    assert Workspace.open(tmp_path / "workspaces", "rmsnorm").read_at(rmsnorm.spec.kernel_name, "main") is None


async def test_the_report_outlives_its_way_to_disk(rmsnorm: Op, tmp_path: Path) -> None:
    run = await play(rmsnorm, tmp_path, Replies(GRAVE), "loop.rounds=1")
    folder = tmp_path / "workspaces" / "runs" / run.id
    assert from_json(Run, (folder / "run.json").read_bytes()) == run
    assert "divided-by-block" in (folder / "attempts" / "01-correct-1" / "report.md").read_text()
