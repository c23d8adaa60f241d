"""Nights: champions judged again, those that fell demoted, what is due, the report, a night that was killed.

Real git, ledger, batch and report; most verdicts and all figures are scripted. One test has the real judge, and one
that takes long goes the way of a person: the command line, over every op with recorded replies.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from orchestrator import config, finish, ledger
from orchestrator.attempt import Judged
from orchestrator.errors import JudgeError, UsageError, WorkspaceError
from orchestrator.executors.local import LocalExecutor
from orchestrator.executors.pool import Pool, Slot
from orchestrator.measured import Measured, MeasureJob
from orchestrator.nights import compare, night, report, retention, story, webhook
from orchestrator.nights.due import Due, Known, Reason, due
from orchestrator.nights.story import Night, Standing
from orchestrator.ops import Op
from orchestrator.progress import Progress
from orchestrator.records import Job, Report, Status
from orchestrator.report import gather
from orchestrator.watch import Silent
from orchestrator.workspace import Workspace
from tests.agents.loopback import Answer, serving
from tests.conftest import ZOO, zoo_kernel
from tests.measurements import measured, shape
from tests.scripted_judge import Script, ScriptedJudge, key
from tests.test_batch import ROOT, orchestrator
from tests.test_finish import GOOD, recorder_of

KERNELS = {"rmsnorm": "kernels/good.py", "layernorm": "ops/layernorm.py"}
WRONG = {op: (ZOO / name).read_bytes() + b"# broken by hand\n" for op, name in KERNELS.items()}
RECORDED = ("cross_entropy", "fused_add_rmsnorm", "layernorm", "rmsnorm", "softmax", "swiglu")


def put_by_hand(workspaces: Path, op: str, kernel: bytes) -> None:
    """As a person would: a clone, another file, a push."""
    name = f"{op}_triton.py"
    clone = workspaces.parent / f"clone-{op}-{time.monotonic_ns()}"
    git = ["git", "-c", "user.name=a person", "-c", "user.email=person@localhost", "-c", "safe.bareRepository=all"]
    subprocess.run([*git, "clone", "-q", str(workspaces / f"{op}.git"), str(clone)], check=True, capture_output=True)
    (clone / name).write_bytes(kernel)
    subprocess.run([*git, "-C", str(clone), "commit", "-qam", "by hand"], check=True)
    subprocess.run([*git, "-C", str(clone), "push", "-q", "origin", "HEAD:main"], check=True, capture_output=True)


class Nights:
    """Nights over one folder of workspaces, with scripted verdicts."""

    def __init__(self, module: ModuleType, top: Path, begun: Path) -> None:
        shutil.copytree(begun, top, dirs_exist_ok=True)
        self.scenario = module.Scenario(top / "other", 2)
        self.scenario.scripts |= {key(kernel): Script(Status.WRONG_VALUES) for kernel in WRONG.values()}
        self.agents = module.AgentsThatNote(top / "place" / "spent.log")
        self.place, self.workspaces = top / "place", top / "place" / "workspaces"

    def spent(self) -> list[str]:
        """The jobs so far."""
        return (self.place / "spent.log").read_text().splitlines()

    def one(self, *overrides: str, judge: ScriptedJudge | None = None) -> Night:
        """The next night."""
        settings = config.load(overrides=("agent.name=recorded", "night.generate=[]", *overrides))
        by_name = {op.name: op for op in self.scenario.ops}
        pool = Pool([Slot(judge or ScriptedJudge(self.scenario.scripts, self.place / "spent.log"))])
        index = ledger.Ledger(self.workspaces)
        progress = Progress(Console(quiet=True), quiet=True)
        means = night.Means(
            *(self.workspaces, sorted(by_name), by_name.__getitem__, settings, pool, self.agents, index, progress)
        )
        try:
            with night.held(self.workspaces):
                return asyncio.run(night.carry_out(means))
        finally:
            index.close()


@pytest.fixture(scope="module")
def begun(kill_batches: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rmsnorm and layernorm, each with a champion that was measured."""
    top = tmp_path_factory.mktemp("begun")
    (top / "place").mkdir()
    kill_batches.carry_out(kill_batches.Scenario(top / "ops", 2), top / "place")
    return top


@pytest.fixture
def nights(kill_batches: ModuleType, begun: Path, tmp_path: Path) -> Nights:
    """Nights over a copy of them."""
    return Nights(kill_batches, tmp_path, begun)


def test_a_champion_that_was_broken_is_the_one_regression(nights: Nights) -> None:
    first = nights.one()
    assert first.exit_code == 0 and [one.status for one in first.checked] == [Status.PASSED, Status.PASSED]
    assert first.begun.id[:4].isdigit() and first.last == "" and first.since == ()
    champion = Workspace.open(nights.workspaces, "rmsnorm").champion("rmsnorm_triton.py")
    assert champion is not None and champion.run.startswith("rmsnorm-")
    put_by_hand(nights.workspaces, "rmsnorm", WRONG["rmsnorm"])

    second = nights.one()
    assert second.exit_code == 1 and second.last == first.begun.id
    assert [(one.op, one.what, one.text) for one in second.regressions] == [
        ("rmsnorm", "demoted", "WRONG_VALUES: as scripted")
    ]
    assert second.since == ("rmsnorm: another champion than the last night's",)
    space = Workspace.open(nights.workspaces, "rmsnorm")
    assert space.read("rmsnorm_triton.py") is None and space.read("DECISION.md") is None
    history = ["git", "-C", str(space.path), "log", "-1", "--format=%s|%(trailers:separator=%x2C)", "main"]
    told = subprocess.run(history, check=True, capture_output=True, text=True).stdout
    assert told.startswith(f"demoted by the night of {second.begun.id}: WRONG_VALUES: as scripted|Demoted: ")
    assert f"Status: WRONG_VALUES,Night: {second.begun.id}" in told
    assert space.read_at("rmsnorm_triton.py", "main^") == WRONG["rmsnorm"], "history keeps it"
    text = (second.begun.folder(nights.workspaces) / story.REPORT).read_text()
    assert text.startswith(f"# Night {second.begun.id}: 1 regression\n") and "**rmsnorm: demoted**" in text
    assert second.demotions["rmsnorm"][:12] in text

    third = nights.one()
    assert third.exit_code == 0 and [one.op for one in third.checked] == ["layernorm"]
    assert third.since == (), "the last night had told of it"
    assert story.last(nights.workspaces) == third


def test_a_champion_that_fell_is_replaced_by_what_is_generated(nights: Nights) -> None:
    put_by_hand(nights.workspaces, "rmsnorm", WRONG["rmsnorm"])
    fallen = nights.one("night.generate=[failed]")
    assert fallen.due == (Due("rmsnorm", Reason.FAILED, 1.0),)
    assert [(one.op, one.decision) for one in fallen.generated] == [("rmsnorm", "MERGE")] and fallen.exit_code == 1
    champion = Workspace.open(nights.workspaces, "rmsnorm").champion("rmsnorm_triton.py")
    assert champion is not None and champion.run == fallen.generated[0].run
    by_name = {op.name: op for op in nights.scenario.ops}
    told = gather.gather(nights.workspaces, gather.night, by_name.__getitem__)
    assert told.chosen == {champion.run}
    assert [one.runs for one in told.nights].count((champion.run,)) == 1, "a night's batch is told once"
    after = nights.one("night.generate=[failed]")
    assert (
        after.exit_code == 0
        and after.due == ()
        and after.since == ("rmsnorm: has a champion, the last night had none",)
    )
    rows = {row["run"]: row["decision"] for row in ledger.Ledger(nights.workspaces).rows("decisions")}
    assert rows[champion.run] == "MERGE"


def test_a_champion_that_slowed_is_reported_and_stays(nights: Nights) -> None:
    assert nights.one().exit_code == 0
    (kernel,) = [digest for digest, script in nights.scenario.scripts.items() if script.us == 30.0]
    nights.scenario.scripts[kernel] = Script(Status.PASSED, 33.0)
    slower = nights.one()
    assert slower.exit_code == 1 and [(one.op, one.what) for one in slower.regressions] == [("layernorm", "slower")]
    assert "by run layernorm-" in slower.regressions[0].text and slower.demotions == {}
    nights.scenario.scripts[kernel] = Script(Status.PASSED, 30.2)
    assert nights.one().exit_code == 0, "within the margin"


class DiesAt(ScriptedJudge):
    """Judges a few; then the process ends."""

    left = 1

    async def judge(self, job: Job) -> Report:
        if not self.left:
            raise RuntimeError("killed")
        self.left -= 1
        return await super().judge(job)


def test_a_night_that_was_killed_goes_on(nights: Nights) -> None:
    put_by_hand(nights.workspaces, "layernorm", WRONG["layernorm"])
    with pytest.raises(RuntimeError, match="killed"):
        nights.one(judge=DiesAt(nights.scenario.scripts, nights.place / "spent.log"))
    assert story.last(nights.workspaces) is None
    begun = story.unfinished(nights.workspaces)
    assert begun is not None
    done = len(nights.spent())
    whole = nights.one()
    assert whole.begun == begun and whole.exit_code == 1
    asked = [line for line in nights.spent()[done:] if line.startswith("judge")]
    assert len(asked) <= 3, "what was found before is not asked for again"
    assert nights.one().begun.id != begun.id


def test_a_fall_that_was_interrupted_is_told_by_the_same_commit(nights: Nights) -> None:
    put_by_hand(nights.workspaces, "rmsnorm", WRONG["rmsnorm"])
    fallen = nights.one()
    (fallen.begun.folder(nights.workspaces) / story.NIGHT).unlink()  # killed just before it was over
    again = nights.one()
    assert again.begun == fallen.begun and again.demotions == fallen.demotions and again.demotions["rmsnorm"]
    assert again.regressions == fallen.regressions


def test_another_machine_begins_another_night(nights: Nights) -> None:
    ended = nights.one()
    folder = ended.begun.folder(nights.workspaces)
    (folder / story.NIGHT).unlink()
    begun = json.loads((folder / story.BEGUN).read_text())
    begun["judging"]["versions"]["triton"] = "2.0"
    (folder / story.BEGUN).write_text(json.dumps(begun))
    assert nights.one().begun.id != ended.begun.id


class FailsOnce(ScriptedJudge):
    """A process that something else killed, once."""

    failed = False

    async def judge(self, job: Job) -> Report:
        if not self.failed:
            self.failed = True
            return Report(Status.CRASHED, "killed from outside", seed=3)
        return await super().judge(job)


def test_no_champion_falls_by_one_failure(nights: Nights) -> None:
    unsteady = nights.one(judge=FailsOnce(nights.scenario.scripts, nights.place / "spent.log"))
    assert unsteady.exit_code == 1 and [one.what for one in unsteady.regressions] == ["unsteady"]
    assert unsteady.demotions == {} and Workspace.open(nights.workspaces, "layernorm").read("layernorm_triton.py")


class ConvictsWhileTimed(ScriptedJudge):
    """A card that others use too: a kernel runs out of time while it is timed, so many times."""

    left = 1

    async def measure(self, job: MeasureJob, tell: Callable[[str], None]) -> Measured:
        found = await super().measure(job, tell)
        if not self.left:
            return found
        self.left -= 1
        return Measured(Status.TIMEOUT, "a call took too long", found.nonce, seed=3)


def test_no_champion_falls_by_one_timing(nights: Nights) -> None:
    busy = ConvictsWhileTimed(nights.scenario.scripts, nights.place / "spent.log")
    unsteady = nights.one(judge=busy)
    assert unsteady.demotions == {} and [one.what for one in unsteady.regressions] == ["unsteady"]
    assert "TIMEOUT, then PASSED with the same values: while it was timed:" in unsteady.regressions[0].text
    assert nights.one().exit_code == 0, "what it was before is in its run, not in that night"
    busy.left = 2
    fallen = nights.one(judge=busy)
    (demoted,) = fallen.regressions
    assert demoted.what == "demoted" and demoted.text == "TIMEOUT: while it was timed: a call took too long"
    assert list(fallen.demotions) == [demoted.op] == [unsteady.regressions[0].op]


class Broken(ScriptedJudge):
    """Ours fails."""

    async def judge(self, job: Job) -> Report:
        raise JudgeError("the judge died twice on one attempt")


def test_a_failure_of_ours_demotes_nobody(nights: Nights) -> None:
    unjudged = nights.one(judge=Broken(nights.scenario.scripts, nights.place / "spent.log"))
    assert unjudged.exit_code == 3 and unjudged.regressions == () and unjudged.demotions == {}
    assert "2 champions without a verdict" in report.headline(unjudged)


def test_what_ends_generating_does_not_end_the_report(nights: Nights) -> None:
    ended = nights.one("night.generate=[headroom]", "budget.batch.usd=1", "agent.name=inbox")
    assert ended.exit_code == 2 and "agent.prices" in ended.trouble and len(ended.checked) == 2
    assert "agent.prices" in (ended.begun.folder(nights.workspaces) / story.REPORT).read_text()


def test_one_night_at_a_time(tmp_path: Path) -> None:
    with night.held(tmp_path), pytest.raises(UsageError, match="another process is at a night"), night.held(tmp_path):
        pass
    with night.held(tmp_path):
        pass


KNOWN = Known("op", "MERGE", champion=True, fell=False, changed=False, share=0.99, enough=0.92)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"last": None, "champion": False}, Reason.NEW),
        ({"last": None}, None),  # a champion without a run: put there by hand
        ({"champion": False, "fell": True}, Reason.FAILED),
        ({"champion": False, "last": "ESCALATE"}, Reason.FAILED),
        ({"champion": False, "last": ""}, Reason.FAILED),
        ({"champion": False, "last": "ABANDON"}, None),
        ({"champion": False, "last": "UNMEASURED"}, None),
        ({"changed": True}, Reason.CHANGED),
        ({"share": 0.5}, Reason.HEADROOM),
        ({"share": None}, None),
    ],
)
def test_what_is_due(change: dict[str, object], reason: Reason | None) -> None:
    found = due([replace(KNOWN, **change)], tuple(Reason))  # type: ignore[arg-type]
    assert [one.reason for one in found] == ([reason] if reason else [])


def test_most_headroom_comes_first() -> None:
    known = [replace(KNOWN, op=op, share=share) for op, share in (("a", 0.9), ("b", 0.2), ("c", 0.5))]
    new = replace(KNOWN, op="d", last=None, champion=False, share=None)
    assert [one.op for one in due([*known, new], tuple(Reason))] == ["d", "b", "c", "a"]
    assert [one.op for one in due([*known, new], [Reason.NEW])] == ["d"]


def slower(then: Measured, now: Measured) -> bool:
    return compare.speed(now, then, "run r", 0.02).slower


def test_slower_is_said_of_the_kernel_only() -> None:
    assert slower(measured(shape(30)), measured(shape(33)))
    assert not slower(measured(shape(30)), measured(shape(30.3))), "within the margin"
    assert not slower(measured(shape(30)), measured(shape(60, compiled=100))), "the whole card is slower today"
    faster_compile = shape(30, compiled=40)
    reference = replace(faster_compile.baselines[0], latencies_us=shape(30).baselines[0].latencies_us)
    faster_compile = replace(faster_compile, baselines=(reference, *faster_compile.baselines[1:]))
    assert not slower(measured(shape(30)), measured(faster_compile)), "a baseline that became faster is no fault"
    assert not slower(measured(shape(30)), measured(shape(33, twin=1.2))), "a noisy session shows nothing"
    other = measured(shape(33))
    assert other.before is not None
    other = replace(other, before=replace(other.before, name="NVIDIA A100"))
    assert compare.speed(other, measured(shape(30)), "run r", 0.02).record == "", "another card is no comparison"


def test_only_what_was_rejected_long_ago_is_pruned(nights: Nights) -> None:
    runs = nights.workspaces / "runs"
    jobs = {path.parent.parent.parent.name.split("-")[0]: path for path in sorted(runs.glob("*/attempts/*/job"))}
    (record,) = runs.glob("layernorm-*/run.json")
    record.write_text(record.read_text().replace('"decision": "MERGE"', '"decision": "ABANDON"'))
    swept = record.parent / "sweeps" / "01" / "job"
    assert swept.is_dir()
    assert retention.prune(nights.workspaces, time.time() - 86400) == 0, "nothing is that old"
    assert retention.prune(nights.workspaces, time.time() + 1) > 0
    assert not swept.exists() and swept.parent.is_dir()
    assert not jobs["layernorm"].exists() and (jobs["layernorm"].parent / "report.json").is_file()
    assert jobs["rmsnorm"].is_dir(), "accepted work stays"
    record.write_text("{}")
    assert retention.prune(nights.workspaces, time.time() + 1) == 0, "what cannot be read is left alone"


def test_a_webhook_is_told_and_its_address_is_not(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    put_by_hand(nights.workspaces, "rmsnorm", WRONG["rmsnorm"])
    fallen = nights.one()
    text = report.in_lines(fallen)
    with serving() as server:
        url = f"{server.url}/hooks/s3cret-path"
        monkeypatch.setenv(webhook.VARIABLE, url)
        refused = (404, 500, 500, 500, 302)
        server.answers = [Answer(pieces=(b"ok",))] * 2 + [Answer(status, {"location": "/x"}) for status in refused]
        for form in ("json", "slack"):
            webhook.send(webhook.address(), webhook.message(fallen, text, form))
        generic, slack = (asked.body for asked in server.asked)
        assert generic["exit_code"] == 1 and generic["regressions"][0]["op"] == "rmsnorm"
        assert set(slack) == {"text"} and "rmsnorm: demoted: WRONG_VALUES" in slack["text"]
        for status in dict.fromkeys(refused):
            with pytest.raises(webhook.NotDelivered) as raised:
                webhook.send(url, {})
            assert "s3cret" not in str(raised.value) and f"HTTP {status}" in str(raised.value)
        assert len(server.asked) == 7, "only the busy one is asked again"
    with pytest.raises(webhook.NotDelivered, match="could not be reached") as raised:
        webhook.send(url, {})
    assert "s3cret" not in str(raised.value) and raised.value.__cause__ is None
    monkeypatch.setenv(webhook.VARIABLE, "hooks.example/s3cret-path")
    with pytest.raises(UsageError) as refused:
        webhook.address()
    assert "s3cret" not in str(refused.value)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_real_judge_over_two_nights(judge: LocalExecutor, small_rmsnorm: Op, tmp_path: Path) -> None:
    workspaces = tmp_path / "workspaces"
    recorder = recorder_of(small_rmsnorm, workspaces, Judged(GOOD, zoo_kernel("good")))
    run = finish.find(recorder.run.id, workspaces, lambda name: small_rmsnorm)
    finish.adopt(run, "for tonight", Silent())
    settings = config.load(overrides=("night.generate=[]", "judge.quick=true"))
    index, progress = ledger.Ledger(workspaces), Progress(Console(quiet=True), quiet=True)
    agents: object = None
    means = night.Means(
        *(workspaces, ["rmsnorm"], lambda name: small_rmsnorm, settings, Pool([Slot(judge)]), agents, index, progress)  # type: ignore[arg-type]
    )
    first = await night.carry_out(means)
    assert first.exit_code == 0 and first.checked[0].passed_cases == first.checked[0].cases > 0
    assert first.checked[0].unmeasured == "no GPU here: correctness only" or not first.begun.judging.interpreted
    put_by_hand(workspaces, "rmsnorm", zoo_kernel("divides_by_block"))
    second = await night.carry_out(means)
    assert second.exit_code == 1 and [(one.op, one.what) for one in second.regressions] == [("rmsnorm", "demoted")]
    assert second.checked[0].standing == Standing(
        "rmsnorm", second.checked[0].standing.commit, "", second.checked[0].standing.sha256
    )
    index.close()


@pytest.mark.long
def test_two_nights_over_every_recorded_op(tmp_path: Path) -> None:
    names = ",".join(RECORDED)
    batch = orchestrator(tmp_path, "--ops", names, "--agent", "recorded", "--device", "cpu", "--json", "--judges", "2")
    assert batch.returncode == 0, batch.stderr
    for one in json.loads(batch.stdout):
        adopted = orchestrator(tmp_path, "adopt", one["run"], "--reason", "correct, and to be watched")
        assert adopted.returncode == 0, adopted.stderr
    night_of = ("nightly", "-c", str(ROOT / "configs" / "nightly.yaml"), "--device", "cpu", "-c", "night.generate=[]")
    first = orchestrator(tmp_path, *night_of, "-c", "night.judges=2")
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"no regression; {len(RECORDED)} of {len(RECORDED)} champions hold" in first.stdout
    kernel = Workspace.open(tmp_path / "workspaces", "softmax").read("softmax_triton.py")
    assert kernel is not None
    broken = re.sub(rb"tl\.sum\(", b"2.0 * tl.sum(", kernel)
    assert broken != kernel
    put_by_hand(tmp_path / "workspaces", "softmax", broken)
    second = orchestrator(tmp_path, *night_of, "--json")
    assert second.returncode == 1, second.stderr
    told = json.loads(second.stdout)
    assert [(one["op"], one["what"]) for one in told["regressions"]] == [("softmax", "demoted")]
    assert sum(one["status"] == "PASSED" for one in told["checked"]) == len(RECORDED) - 1


def test_what_the_command_line_refuses(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    for arguments, said in (
        (("-c", "night.ops=[rmsnrm]", "--agent", "recorded"), "did you mean rmsnorm?"),
        ((), "night.generate=[]"),
        (("-c", "night.generate=[]", "-c", "night.webhook=json"), webhook.VARIABLE),
    ):
        command = [sys.executable, "-m", "orchestrator", "nightly", *arguments]
        result = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 2 and said in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_history_stops_a_night_before_it_begins(nights: Nights) -> None:
    foreign = nights.workspaces / "rmsnorm.git"
    shutil.rmtree(foreign)
    subprocess.run(["git", "init", "-q", "--bare", str(foreign)], check=True)
    with pytest.raises(WorkspaceError, match="not marked as the workspace of rmsnorm") as raised:
        nights.one()
    assert "\n" not in str(raised.value) and raised.value.exit_code == 3
    assert [path.name for path in (nights.workspaces / story.FOLDER).iterdir()] == ["lock"]


def test_a_record_that_cannot_be_read_is_one_line(nights: Nights) -> None:
    (nights.workspaces / story.FOLDER / "2020-01-01").mkdir(parents=True)
    (nights.workspaces / story.FOLDER / "2020-01-01" / story.NIGHT).write_text('{"begun": 3}')
    with pytest.raises(UsageError, match="no record of a night that this program can read") as raised:
        nights.one()
    assert "\n" not in str(raised.value)
