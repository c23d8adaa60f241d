"""Several proposals at once in a round: which wins, what the others leave, a call that fails, a run that is killed.

Real loop, git, guard, policy and ledger; replies and verdicts come from tables.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, ledger, past, rounds
from orchestrator.agents import Agent, Request, Wordless
from orchestrator.agents.recorded import RecordedAgent
from orchestrator.asking import Asking, Purse
from orchestrator.config import Budget
from orchestrator.errors import AgentError, AgentUnusable, BudgetSpent
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Attempt, CaseResult, Decision, Reply, Report, Run, Status, Usage
from orchestrator.reply import wrapped
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key

GOOD, WRONG = zoo_kernel("good"), zoo_kernel("divides_by_block")
BETTER, BEST, WORSE = (GOOD + f"# {word}\n".encode() for word in ("better", "best", "worse"))
SCRIPTS = {
    GOOD: Script(Status.PASSED, 60.0),
    BETTER: Script(Status.PASSED, 40.0),
    BEST: Script(Status.PASSED, 30.0),
    WORSE: Script(Status.WRONG_VALUES, wrong=3),
    WRONG: Script(Status.WRONG_VALUES, wrong=1),
}
CORRECT = "loop.stages=[correct]"
RUN_ID = "rmsnorm-20260101-000000-abcdef"
Answer = bytes | Exception


class Scripted:
    """Answers by stage and round, with a kernel or an error for each sample; all of a round must be asked at once."""

    name = "scripted"
    at_once = True

    def __init__(self, **rounds: tuple[Answer, ...]) -> None:
        self._rounds = {name.replace("_", "-"): answers for name, answers in rounds.items()}
        self._together = {name: asyncio.Barrier(len(answers)) for name, answers in self._rounds.items()}
        self.asked: list[str] = []
        self.last: dict[str, Request] = {}  # by stage and round

    async def propose(self, request: Request) -> Reply:
        which = f"{request.stage}-{request.round}"
        self.asked.append(f"{which}.{request.sample}")
        self.last[which] = request
        answers = self._rounds[which]
        if self.at_once:
            async with asyncio.timeout(5):
                await self._together[which].wait()
            await asyncio.sleep(0.01 * (len(answers) - request.sample))  # the last is the first to answer
        if isinstance(answer := answers[request.sample - 1], Exception):
            raise answer
        return Reply(wrapped("Here.", answer.decode(), "rmsnorm_triton.py"), "a model", Usage(1.0, 1000, 200))


async def play(op: Op, tmp_path: Path, agent: Agent, samples: int, *set_: str, run_id: str | None = None) -> Run:
    judge = ScriptedJudge({key(kernel): script for kernel, script in SCRIPTS.items()}, tmp_path / "judged")
    settings = config.load(overrides=(f"loop.samples={samples}", *set_))
    workspaces = tmp_path / "workspaces"
    with ledger.entered(workspaces, Silent()) as watch:
        return await run_op(op, agent, judge, settings, workspaces, watch, run_id)  # type: ignore[arg-type]


def jobs(tmp_path: Path, kind: str) -> list[str]:
    """The folders of the jobs of that kind, below the run's."""
    lines = (tmp_path / "judged").read_text().splitlines()
    return ["/".join(Path(line.split(" ", 1)[1]).parts[-3:-1]) for line in lines if line.startswith(kind)]


def statuses(run: Run) -> list[Status]:
    return [attempt.status for attempt in run.attempts]


def told(request: Request) -> str:
    return request.prompt.turns[-1].text


async def test_the_first_that_passes_goes_on_and_all_are_attempts(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct_1=(WRONG, BETTER, BEST))
    run = await play(rmsnorm, tmp_path, agent, 3, CORRECT)
    assert [(one.number, one.round, one.status) for one in run.attempts] == [
        (1, 1, Status.WRONG_VALUES),
        (2, 1, Status.PASSED),
        (3, 1, Status.PASSED),
    ]
    assert run.best == 2 and run.verdict is not None and run.verdict.decision is Decision.MERGE
    assert jobs(tmp_path, "judge") == [f"attempts/0{number}-correct-1" for number in (1, 2, 3)]
    assert jobs(tmp_path, "measure") == ["measurements/01"]
    assert run.cost.calls == 3 and run.cost.input_tokens == 3000


async def test_optimize_measures_all_and_tune_the_first(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct_1=(GOOD, WRONG, WRONG), optimize_1=(BETTER, WRONG, BEST))
    run = await play(rmsnorm, tmp_path, agent, 3, "loop.stages=[correct,optimize]")
    assert run.best == 6 and len(jobs(tmp_path, "measure")) == 3
    agent = Scripted(correct_1=(GOOD, WRONG, WRONG), tune_1=(WRONG, BETTER, BEST))
    run = await play(rmsnorm, tmp_path / "tune", agent, 3, "loop.stages=[correct,tune]")
    assert run.best == 5 and len(jobs(tmp_path / "tune", "measure")) == 2


async def test_the_best_failing_one_is_repaired_and_the_others_are_named(rmsnorm: Op, tmp_path: Path) -> None:
    refused = b"import os\n" + GOOD
    agent = Scripted(correct_1=(WORSE, WRONG, refused), correct_2=(GOOD, GOOD, GOOD))
    run = await play(rmsnorm, tmp_path, agent, 3, CORRECT)
    assert statuses(run)[:2] == [Status.WRONG_VALUES] * 2 and run.best == 4
    request = agent.last["correct-2"]
    assert request.prompt.turns[1].text == wrapped("Here.", WRONG.decode(), "rmsnorm_triton.py")
    assert request.files["rmsnorm_triton.py"] == WRONG, "also where an agent works in the tree itself"
    assert "1 of 3 cases wrong" in told(request)
    others = told(request).split("# Other proposals of this round")[1].split("# What to do")[0]
    assert "- WRONG_VALUES, 3 of 3 cases wrong" in others and f"- {run.attempts[2].status}, " in others


async def test_a_call_that_fails_is_an_attempt_and_the_round_goes_on(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct_1=(WRONG, AgentError("529 overloaded"), WORSE), correct_2=(GOOD, WRONG, WRONG))
    run = await play(rmsnorm, tmp_path, agent, 3, CORRECT)
    assert statuses(run)[:3] == [Status.WRONG_VALUES, Status.INFRASTRUCTURE, Status.WRONG_VALUES] and run.best == 4
    assert run.attempts[1].report.message == "unanswered: 529 overloaded" and run.cost.calls == 5
    assert "529" not in told(agent.last["correct-2"]), "a model is told of kernels"
    workspaces = tmp_path / "workspaces"
    assert _rows(workspaces) == _rebuilt(workspaces)
    assert [row["answered"] for row in _rows(workspaces)["model_calls"]] == [1, 0, 1, 1, 1, 1]
    later = Scripted(correct_1=(GOOD,))
    await play(rmsnorm, tmp_path, later, 1, CORRECT)
    assert "3 of 3 cases wrong" in told(later.last["correct-1"]) and "529" not in told(later.last["correct-1"])


async def test_what_a_model_took_for_no_word_is_counted(rmsnorm: Op, tmp_path: Path) -> None:
    def agent() -> Scripted:
        nothing = Wordless("declined", Reply("", "a model", Usage(1.0, 1000, 200)))
        return Scripted(correct_1=(WRONG, nothing), correct_2=(GOOD, AgentError("away")))

    run = await play(rmsnorm, tmp_path, Asking(agent(), (Purse("op", Budget()),)), 2, CORRECT)
    assert statuses(run)[:2] == [Status.WRONG_VALUES, Status.INFRASTRUCTURE]
    assert (run.cost.calls, run.cost.input_tokens, run.cost.output_tokens) == (3, 3000, 600)
    workspaces = tmp_path / "workspaces"
    assert [row["output_tokens"] for row in _rows(workspaces)["model_calls"]] == [200, 200, 200, None]
    assert _rows(workspaces) == _rebuilt(workspaces)
    asked, purse = agent(), Purse("op", Budget(tokens=2400))
    with pytest.raises(BudgetSpent, match="tokens of 2400 is spent"):
        await play(rmsnorm, tmp_path / "budget", Asking(asked, (purse,)), 2, CORRECT)
    assert purse.tokens == 2400 and asked.asked == ["correct-1.1", "correct-1.2"]


async def test_a_run_that_ends_without_a_word_is_in_the_ledger(rmsnorm: Op, tmp_path: Path) -> None:
    nothing = Wordless("declined", Reply("", "a model", Usage(1.0, 1000, 200)))
    with pytest.raises(AgentError, match="declined"):
        await play(rmsnorm, tmp_path, Scripted(correct_1=(nothing,)), 1, CORRECT)
    (call,) = _rows(tmp_path / "workspaces")["model_calls"]
    assert (call["model"], call["output_tokens"]) == ("a model", 200)
    assert _rows(tmp_path / "workspaces") == _rebuilt(tmp_path / "workspaces")


async def test_a_run_is_decided_by_the_best_of_its_last_round(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct_1=(WRONG, AgentError("529 overloaded")))
    run = await play(rmsnorm, tmp_path, agent, 2, CORRECT, "loop.rounds=1")
    assert run.verdict is not None and "the last ending in WRONG_VALUES" in run.verdict.reason


async def test_a_round_without_any_reply_ends_the_run(rmsnorm: Op, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="first"):
        await play(rmsnorm, tmp_path, Scripted(correct_1=(AgentError("first"), AgentError("second"))), 2)
    with pytest.raises(AgentUnusable):
        await play(rmsnorm, tmp_path / "key", Scripted(correct_1=(GOOD, AgentUnusable("a wrong key"))), 2)


async def test_every_sample_counts_against_the_budget(rmsnorm: Op, tmp_path: Path) -> None:
    asked = Scripted(correct_1=(WRONG, WORSE), correct_2=(WRONG,))
    purse = Purse("op", Budget(rounds=3))
    with pytest.raises(BudgetSpent, match="rounds of 3 is spent"):
        await play(rmsnorm, tmp_path, Asking(asked, (purse,)), 2)
    assert asked.asked == ["correct-1.1", "correct-1.2", "correct-2.1"] and purse.rounds == 3


async def test_recorded_replies_of_a_round(rmsnorm: Op, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    entry = "- {{file: {}, model: m, date: 2026-01-01, prompt_sha256: {}}}\n"
    replies = {"correct-1.md": WRONG, "correct-1.2.md": GOOD}
    for name, kernel in replies.items():
        (folder / name).write_text(wrapped("Here.", kernel.decode(), "rmsnorm_triton.py"))
    (folder / "recorded.yaml").write_text("".join(entry.format(name, "a" * 64) for name in replies))
    run = await play(rmsnorm, tmp_path, RecordedAgent(folder), 3, CORRECT)
    assert statuses(run) == [Status.WRONG_VALUES, Status.PASSED, Status.INFRASTRUCTURE] and run.best == 2
    assert "sample 3" in run.attempts[2].report.message


class Killed:
    """Ends its process without a word when that sample is asked, after the others have answered."""

    name = "scripted"

    def __init__(self, agent: Agent, sample: str) -> None:
        self._agent = agent
        self._sample = sample

    async def propose(self, request: Request) -> Reply:
        reply = await self._agent.propose(request)
        if f"{request.stage}-{request.round}.{request.sample}" == self._sample:
            await asyncio.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        return reply


def in_a_process(work: Callable[[], object]) -> int:
    """The signal that ended a fork which does that."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(1)
    return os.WTERMSIG(os.waitpid(pid, 0)[1])


def test_a_killed_round_asks_only_for_what_had_not_come(rmsnorm: Op, tmp_path: Path) -> None:
    def agent() -> Scripted:
        nothing = Wordless("declined", Reply("", "a model", Usage(1.0, 1000, 200)))
        return Scripted(correct_1=(WRONG, AgentError("down"), nothing), correct_2=(WORSE, GOOD, BETTER))

    def killing() -> None:
        asyncio.run(play(rmsnorm, tmp_path, Killed(agent(), "correct-2.2"), 3, CORRECT, run_id=RUN_ID))

    assert in_a_process(killing) == signal.SIGKILL
    again = agent()
    again.at_once = False
    resumed = asyncio.run(play(rmsnorm, tmp_path, Asking(again, ()), 3, CORRECT, run_id=RUN_ID))
    undisturbed = asyncio.run(play(rmsnorm, tmp_path / "undisturbed", agent(), 3, CORRECT, run_id=RUN_ID))
    assert again.asked == ["correct-2.2"], "neither what was answered nor what is known to have no answer"
    assert _story(resumed) == _story(undisturbed)
    assert resumed.cost == undisturbed.cost and resumed.cost.calls == 5
    assert _rows(tmp_path / "workspaces") == _rebuilt(tmp_path / "workspaces")
    assert resumed.best == undisturbed.best == 5 and resumed.remarks == undisturbed.remarks


def _story(run: Run) -> list[tuple[object, ...]]:
    return [(one.number, one.round, one.status, one.report.message, one.prompt_sha256) for one in run.attempts]


def _rows(workspaces: Path) -> dict[str, list[ledger.Row]]:
    with closing(ledger.Ledger(workspaces)) as index:
        return {table: index.rows(table) for table in ledger.TABLES}


def _rebuilt(workspaces: Path) -> dict[str, list[ledger.Row]]:
    ledger.rebuild(workspaces)
    return _rows(workspaces)


def _ended(*reports: Report) -> Run:
    attempts = tuple(
        Attempt(number, "correct", 1, "a", "m", "", report, Usage(1.0)) for number, report in enumerate(reports, 1)
    )
    return Run("r", "op", "run/r", "", "", "a", attempts)


def test_what_came_furthest() -> None:
    case = CaseResult("a", {"M": 1}, "float32", 1.0, False, Status.PASSED)
    wrong = replace(case, status=Status.WRONG_VALUES)

    def failing(count: int) -> Report:
        cases = (*[wrong] * count, *[case] * (3 - count))
        return Report(Status.WRONG_VALUES, "", cases=cases, expected_cases=3, device="d")

    unanswered, refused = Report(Status.INFRASTRUCTURE, "no reply"), Report(Status.FORBIDDEN, "")
    run = _ended(unanswered, refused, failing(2), failing(1), failing(1))
    assert [one.number for one in rounds.ranked(run)] == [4, 5, 3, 2, 1]
    assert [rounds.answered(one) for one in run.attempts] == [False, True, True, True, True]
    earlier = replace(run.attempts[3], round=1)
    newest = replace(run.attempts[2], round=2)
    assert rounds.last(replace(run, attempts=(earlier, newest))) == (newest,)
    assert rounds.furthest(replace(run, attempts=())) is None


async def test_a_run_that_goes_on_keeps_the_settings_that_it_was_begun_with(rmsnorm: Op, tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        await play(rmsnorm, tmp_path, Scripted(correct_1=(AgentError("away"),)), 1, CORRECT, run_id=RUN_ID)
    begun = past.find(RUN_ID, tmp_path / "workspaces").settings()
    other = ("loop.rounds=7", "judge.limits.call_s=77")
    await play(rmsnorm, tmp_path, Scripted(correct_1=(GOOD,)), 1, CORRECT, *other, run_id=RUN_ID)
    assert past.find(RUN_ID, tmp_path / "workspaces").settings() == begun
