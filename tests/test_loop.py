"""The loop with everything real but the model: replies come from files, as the recorded agent replays them.

Real git, guard, policy, judge and sandbox; each test scripts a conversation and reads what the run left behind.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from orchestrator import config
from orchestrator.agents import Request
from orchestrator.agents.given import Given
from orchestrator.agents.recorded import RecordedAgent, RepliesExhausted
from orchestrator.errors import JudgeError
from orchestrator.executors.local import LocalExecutor
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Decision, Judging, Reply, Run, SandboxPiece, Status, Usage, from_json
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalExecutor]:
    """A judge without a GPU wherever this runs: what a measurement decides is not the business of these tests."""
    executor = LocalExecutor("cpu", tmp_path_factory.mktemp("judge") / "judge.log")
    yield executor
    await executor.close()


def script(folder: Path, *replies: str) -> RecordedAgent:
    """An agent that gives these replies to the rounds of stage correct, in order."""
    folder.mkdir()
    entries = []
    for number, reply in enumerate(replies, 1):
        name = f"correct-{number}.md"
        (folder / name).write_text(reply)
        entries.append({"file": name, "model": "scripted", "date": date(2026, 1, 1), "prompt_sha256": "0" * 64})
    (folder / "recorded.yaml").write_text(yaml.safe_dump(entries))
    return RecordedAgent(folder)


def block(code: bytes | str, name: str = "rmsnorm_triton.py") -> str:
    """A reply with one named file."""
    text = code if isinstance(code, str) else code.decode()
    return f"Here it is.\n\n```python {name}\n{text}\n```\n"


async def play(op: Op, judge: LocalExecutor, tmp_path: Path, *replies: str) -> Run:
    """A run with scripted replies."""
    agent = script(tmp_path / "replies", *replies)
    return await run_op(op, agent, judge, config.load(), tmp_path / "workspaces", Silent())


def run_folder(tmp_path: Path, run: Run) -> Path:
    return tmp_path / "workspaces" / "runs" / run.id


def git(tmp_path: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tmp_path / "workspaces" / "rmsnorm.git"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


FALLBACK = """import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    xf = x.float()
    return (xf * torch.rsqrt(xf.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)
"""


async def test_wrong_then_right(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, block(zoo_kernel("divides_by_block")), block(zoo_kernel("good")))

    assert [attempt.status for attempt in run.attempts] == [Status.WRONG_VALUES, Status.PASSED]
    assert run.verdict is not None and run.verdict.decision is Decision.UNMEASURED
    assert run.exit_code == 0
    fed_back = (run_folder(tmp_path, run) / "attempts" / "02-correct-2" / "prompt.md").read_text()
    for told in ("no power of two", "float32-M1xN7-scale0.001", "BLOCK + eps", "root cause of each failing case"):
        assert told in fed_back, f"the second prompt does not hold {told!r}"
    assert "TOLERANCE" in fed_back and "tolerances stand" in fed_back


async def test_a_persons_kernel_is_judged_first_and_repaired(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    agent = Given(
        script(tmp_path / "replies", block(zoo_kernel("good"))),
        zoo_kernel("divides_by_block").decode(),
        rmsnorm.spec.kernel_name,
    )
    settings = config.load(overrides=("loop.given=mine.py", "loop.rounds=1"))
    run = await run_op(rmsnorm, agent, judge, settings, tmp_path / "workspaces", Silent())
    assert [(one.round, one.agent, one.status) for one in run.attempts] == [
        (0, "person", Status.WRONG_VALUES),
        (1, "recorded", Status.PASSED),
    ]
    fed_back = (run_folder(tmp_path, run) / "attempts" / "02-correct-1" / "prompt.md").read_text()
    assert "before the first of 1 rounds" in fed_back and "no power of two" in fed_back and "BLOCK + eps" in fed_back
    assert "Agent: person" in git(tmp_path, "log", "-1", "--format=%(trailers)", str(run.attempts[0].commit))


async def test_three_failing_rounds_escalate(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, *[block(zoo_kernel("divides_by_block"))] * 3)

    assert [attempt.status for attempt in run.attempts] == [Status.WRONG_VALUES] * 3
    assert run.verdict is not None and run.verdict.decision is Decision.ESCALATE
    assert run.exit_code == 1
    assert "ESCALATE" in git(tmp_path, "show", f"{run.branch}:DECISION.md")


async def test_tampering_and_fallback_are_rejected_and_fed_back(
    rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    tampering = block(zoo_kernel("good")) + block("def check(*a):\n    return True\n", "test_correctness.py")
    run = await play(rmsnorm, judge, tmp_path, tampering, block(FALLBACK), block(zoo_kernel("good")))

    assert [attempt.status for attempt in run.attempts] == [Status.TAMPERED, Status.FALLBACK, Status.PASSED]
    assert run.exit_code == 0
    folder = run_folder(tmp_path, run) / "attempts"
    assert "test_correctness.py" in (folder / "02-correct-2" / "prompt.md").read_text()
    assert "rmsnorm_triton.py:8" in (folder / "03-correct-3" / "prompt.md").read_text()
    baseline = git(tmp_path, "show", f"{run.baseline}:test_correctness.py")
    for attempt in run.attempts:
        assert git(tmp_path, "show", f"{attempt.commit}:test_correctness.py") == baseline


async def test_nothing_but_refusals_is_a_rejection(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, *[block(FALLBACK)] * 3)
    assert run.verdict is not None and run.verdict.decision is Decision.REJECT
    assert run.exit_code == 1


async def test_a_reply_without_code_is_no_code(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, "I would rather not.", block(zoo_kernel("good")))
    assert [attempt.status for attempt in run.attempts] == [Status.NO_CODE, Status.PASSED]


async def test_git_tells_the_story(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, block(zoo_kernel("divides_by_block")), block(zoo_kernel("good")))

    subjects = git(tmp_path, "log", "--format=%s", run.branch).splitlines()
    assert subjects[:3] == [
        "decision: UNMEASURED",
        "attempt 2 (correct, round 2): PASSED",
        "attempt 1 (correct, round 1): WRONG_VALUES",
    ]
    trailers = git(tmp_path, "log", "-1", "--format=%(trailers)", str(run.attempts[0].commit))
    for trailer in ("Status: WRONG_VALUES", "Round: 1", "Stage: correct", "Agent: recorded", "Model: scripted"):
        assert trailer in trailers
    assert "Prompt-Sha256: " + run.attempts[0].prompt_sha256 in trailers
    assert git(tmp_path, "show", f"{run.branch}:rmsnorm_triton.py").strip() == zoo_kernel("good").decode().strip()


async def test_the_record_is_complete(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await play(rmsnorm, judge, tmp_path, block(zoo_kernel("good")))
    folder = run_folder(tmp_path, run)
    assert from_json(Run, (folder / "run.json").read_text()) == run
    attempt = folder / "attempts" / "01-correct-1"
    assert {path.name for path in attempt.iterdir()} == {
        *("prompt.md", "reply.md", "usage.json", "report.json", "report.md", "job"),
    }
    assert (attempt / "reply.md").read_text() == block(zoo_kernel("good"))
    assert "rounds: 3" in (folder / "config.yaml").read_text()
    assert not (attempt / "job" / "scratch").exists(), "what candidates write is not kept"


async def test_replies_that_run_out_before_a_pass(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    with pytest.raises(RepliesExhausted, match="anthropic") as raised:
        await play(rmsnorm, judge, tmp_path, block(zoo_kernel("divides_by_block")))
    assert raised.value.exit_code == 2
    (folder,) = (tmp_path / "workspaces" / "runs").iterdir()
    record = from_json(Run, (folder / "run.json").read_text())
    assert record.error and len(record.attempts) == 1 and record.exit_code == 3
    assert "no power of two" in (folder / "attempts" / "02-correct-2" / "prompt.md").read_text()


class CutOff:
    """An agent whose first reply its provider cut off."""

    name = "cut-off"

    async def propose(self, request: Request) -> Reply:
        text = block(zoo_kernel("good")) if request.round > 1 else block(zoo_kernel("good"))[:300]
        return Reply(text, "scripted", Usage(latency_s=0.0), truncated=request.round == 1)


async def test_a_reply_that_was_cut_off_is_said_to_be(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    run = await run_op(rmsnorm, CutOff(), judge, config.load(), tmp_path / "workspaces", Silent())
    assert [attempt.status for attempt in run.attempts] == [Status.COMPILE_ERROR, Status.PASSED]
    told = run_folder(tmp_path, run) / "attempts" / "02-correct-2" / "prompt.md"
    assert "cut off at its limit of tokens" in told.read_text()


class Interrupted:
    """An agent that is cancelled while it is asked, as by Ctrl-C."""

    name = "interrupted"

    async def propose(self, request: Request) -> Reply:
        raise asyncio.CancelledError


async def test_an_interrupt_leaves_a_readable_run(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError):
        await run_op(rmsnorm, Interrupted(), judge, config.load(), tmp_path / "workspaces", Silent())
    (folder,) = (tmp_path / "workspaces" / "runs").iterdir()
    record = from_json(Run, (folder / "run.json").read_text())
    assert record.error == "interrupted"
    assert (folder / "attempts" / "01-correct-1" / "prompt.md").read_text()


async def test_two_runs_at_once(rmsnorm: Op, judge: LocalExecutor, tmp_path: Path) -> None:
    settings, workspaces = config.load(), tmp_path / "workspaces"
    agents = [script(tmp_path / name, block(zoo_kernel("good"))) for name in ("one", "two")]
    other = LocalExecutor("cpu", tmp_path / "judge.log")
    try:
        first, second = await asyncio.gather(
            run_op(rmsnorm, agents[0], judge, settings, workspaces, Silent()),
            run_op(rmsnorm, agents[1], other, settings, workspaces, Silent()),
        )
    finally:
        await other.close()
    assert first.id != second.id and first.baseline == second.baseline
    git(tmp_path, "fsck", "--strict")


async def test_require_sandbox_refuses_where_a_piece_is_missing(
    rmsnorm: Op, judge: LocalExecutor, tmp_path: Path
) -> None:
    class Bare(LocalExecutor):
        """A place of judging that says a piece of its confinement is missing."""

        async def start(self) -> Judging:
            return replace(await judge.start(), sandbox=(SandboxPiece("network namespace", False, "refused"),))

    settings = config.load(overrides=("judge.require_sandbox=true",))
    agent = script(tmp_path / "replies", block(zoo_kernel("good")))
    with pytest.raises(JudgeError, match="network namespace"):
        await run_op(rmsnorm, agent, Bare("cpu", tmp_path / "log"), settings, tmp_path / "workspaces", Silent())
    assert not (tmp_path / "workspaces").exists(), "nothing is begun that is refused"
