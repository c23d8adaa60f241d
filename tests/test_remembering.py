"""What was judged is not judged again, and what must be is: whose verdict it was is said. Verdicts are scripted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config
from orchestrator.executors.remembering import FINGERPRINT, Remembering, circumstances, remembering
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Job, Judging, Report, Run, SandboxPiece, Status, from_json, to_json
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key
from tests.test_improving import Scripted
from tests.test_ledger import WithoutGpu

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = zoo_kernel("good")
SAME = PLAIN.replace(b"rstd", b"scale").replace(b"    M, N = x.shape", b"    # rows, columns\n    M, N = x.shape")
WRONG = zoo_kernel("divides_by_block")
WORKED = Script(Status.PASSED, 40.0)


class Elsewhere(ScriptedJudge):
    """The scripted judge with another driver."""

    async def start(self) -> Judging:
        return replace(await super().start(), versions={"torch": "none", "triton": "none", "driver": "2"})


class Place:
    """A workspace, with a judge that notes what it was asked."""

    def __init__(self, op: Op, folder: Path) -> None:
        self.op = op
        self.folder = folder
        self.scripts = {key(PLAIN): WORKED, key(SAME): WORKED, key(WRONG): Script(Status.WRONG_VALUES)}

    @property
    def judged(self) -> int:
        log = self.folder / "log"
        return sum(line.startswith("judge") for line in log.read_text().splitlines()) if log.exists() else 0

    async def run(
        self,
        kernel: bytes,
        *set_: str,
        op: Op | None = None,
        judge: Callable[[dict[str, Script], Path], ScriptedJudge] = ScriptedJudge,
    ) -> Run:
        settings, op = config.load(overrides=("loop.rounds=1", *set_)), op or self.op
        executor = remembering(
            judge(self.scripts, self.folder / "log"),
            op,
            settings,
            self.folder / "w",  # type: ignore[arg-type]
        )
        return await run_op(op, Scripted(correct=kernel), executor, settings, self.folder / "w", Silent())

    def edit(self, run: Run, change: Callable[[Report], Report]) -> None:
        """The run's record with another verdict on its first attempt."""
        record = self.folder / "w" / "runs" / run.id / "run.json"
        kept = from_json(Run, record.read_bytes())
        first = replace(kept.attempts[0], report=change(kept.attempts[0].report))
        changed = replace(kept, attempts=(first,), best=1 if first.report.passed else None, measurement=None)
        record.write_text(to_json(changed))


@pytest.fixture
def place(rmsnorm: Op, tmp_path: Path) -> Place:
    return Place(rmsnorm, tmp_path)


@pytest.mark.parametrize(("kernel", "again"), [(WRONG, WRONG + b"# again\n"), (PLAIN, SAME)])
async def test_the_same_kernel_is_answered_from_the_record_which_says_so(
    place: Place, kernel: bytes, again: bytes
) -> None:
    place.scripts[key(again)] = Script(Status.NONDETERMINISTIC)  # what would be said if it were run
    first = await place.run(kernel)
    second = await place.run(again)
    assert place.judged == 1
    report, whose = second.attempts[0].report, f"{first.id}#1"
    assert report.status is first.attempts[0].status
    assert f"from the record of {whose}" in report.message and any(whose in note for note in report.notes)
    assert report.cases == first.attempts[0].report.cases and not report.seconds
    third = await place.run(kernel)
    assert f"(from the record of {whose})" in third.attempts[0].report.message, "of who was judged, not of who was not"
    assert third.attempts[0].report.message.count("record") == 1
    decided = (place.folder / "w" / "runs" / second.id / "DECISION.md").read_text()
    assert f"answered from the record of {whose}" in decided


@pytest.mark.parametrize("status", [Status.INFRASTRUCTURE, Status.TIMEOUT])
async def test_what_may_have_been_our_fault_is_judged_again(place: Place, status: Status) -> None:
    place.scripts[key(WRONG)] = Script(status)
    await place.run(WRONG)
    await place.run(WRONG)
    assert place.judged == 2


async def test_other_circumstances_are_others(rmsnorm: Op, make_job: Callable[..., Job]) -> None:
    job, here = make_job(PLAIN), Judging("NVIDIA H200", False, {"driver": "1"}, (SandboxPiece("network", True),))
    spec = rmsnorm.spec.model_copy(update={"title": "RMSNorm, said otherwise"})
    every = [
        circumstances(job, rmsnorm, here),
        circumstances(replace(job, quick=False), rmsnorm, here),
        circumstances(replace(job, skip=("launches",)), rmsnorm, here),
        circumstances(replace(job, first_failure=True), rmsnorm, here),
        circumstances(replace(job, limits=replace(job.limits, call_s=61)), rmsnorm, here),
        circumstances(job, rmsnorm, replace(here, device="NVIDIA A100")),
        circumstances(job, rmsnorm, replace(here, versions={"driver": "2"})),
        circumstances(job, rmsnorm, replace(here, sandbox=(SandboxPiece("network", False, "refused"),))),
        circumstances(job, Op(rmsnorm.folder, spec, rmsnorm.reference), here),
        circumstances(job, Op(rmsnorm.folder, rmsnorm.spec, rmsnorm.reference + "\n"), here),
    ]
    assert len(set(every)) == len(every)
    assert circumstances(replace(job, id="other", nonce="other", folder="/other"), rmsnorm, here) == every[0]


async def test_another_version_is_judged_again(place: Place) -> None:
    await place.run(WRONG)
    await place.run(WRONG, judge=Elsewhere)
    assert place.judged == 2


@pytest.mark.parametrize(("setting", "wraps"), [("loop.remember=false", False), ("judge.seed=7", False), ("", True)])
async def test_who_asks_for_it_has_it_judged_again(rmsnorm: Op, tmp_path: Path, setting: str, wraps: bool) -> None:
    judge = ScriptedJudge({}, tmp_path / "log")
    settings = config.load(overrides=(setting,) if setting else ())
    assert (remembering(judge, rmsnorm, settings, tmp_path) is not judge) is wraps


async def test_who_was_convicted_later_is_not_acquitted_by_the_record(place: Place) -> None:
    first = await place.run(PLAIN)
    convicted = "while it was timed: 7 of 9 elements wrong"
    place.edit(first, lambda report: replace(report, status=Status.WRONG_VALUES, message=convicted))
    second = await place.run(PLAIN)
    assert place.judged == 1 and second.attempts[0].report.message.startswith(convicted)


async def test_a_pass_without_its_evidence_is_none(place: Place) -> None:
    first = await place.run(PLAIN)
    record = place.folder / "w" / "runs" / first.id / "run.json"
    told = json.loads(record.read_text())
    told["attempts"][0]["report"]["cases"] = []
    record.write_text(json.dumps(told))
    second = await place.run(PLAIN)
    assert place.judged == 2 and "record" not in second.attempts[0].report.message


async def test_what_has_no_verdict_yet_answers_nothing(place: Place, make_job: Callable[..., Job]) -> None:
    first = await place.run(PLAIN)
    runs = place.folder / "w" / "runs"
    (runs / first.id / "run.json").unlink()
    assert list(runs.glob(f"*/attempts/*/{FINGERPRINT}"))
    await place.run(PLAIN)
    assert place.judged == 2


async def test_what_does_not_parse_is_the_executors(place: Place, make_job: Callable[..., Job]) -> None:
    place.scripts[key(b"def")] = Script(Status.COMPILE_ERROR)
    judge = Remembering(ScriptedJudge(place.scripts, place.folder / "log"), place.op, place.folder / "w")
    assert (await judge.judge(make_job(b"def"))).status is Status.COMPILE_ERROR


async def test_the_next_prompt_lists_what_was_tried_and_how_it_ended(place: Place) -> None:
    await place.run(WRONG)
    await place.run(PLAIN, "loop.remember=false", judge=WithoutGpu)  # whose worth nobody knows
    await place.run(PLAIN)
    other = place.op.spec.model_copy(update={"title": "RMSNorm, said otherwise"})
    judge = ScriptedJudge(place.scripts, place.folder / "log")

    async def asked(op: Op, *set_: str) -> str:
        agent = Scripted(correct=PLAIN)
        loaded = config.load(overrides=("loop.rounds=1", *set_))
        await run_op(op, agent, judge, loaded, place.folder / "w", Silent())
        return agent.asked["correct-1"]

    told = await asked(place.op)
    section = told.split("# What was tried before, and how it ended")[1]
    assert "- correct: WRONG_VALUES, as scripted" in section
    assert "- correct: PASSED, 1.25 to 1.25 times the speed of torch.compile, 25 % of the ceiling" in section
    assert section.count("PASSED") == 1 and "do not repeat it" in section
    assert "What was tried" not in await asked(place.op, "loop.remember=false")
    assert "What was tried" not in await asked(Op(place.op.folder, other, place.op.reference)), "of another op"
