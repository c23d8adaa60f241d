"""From a correct kernel to a faster one: launch parameters, what a model is told, a person's kernel.

Real loop, git, guard and policy; verdicts and times come from a table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import config, launching, measuring
from orchestrator.agents import Request
from orchestrator.agents.given import Given, Nobody
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.errors import UsageError
from orchestrator.loop import run_op
from orchestrator.measured import Launch
from orchestrator.ops import Op
from orchestrator.records import Decision, Reply, Run, Status, Usage
from orchestrator.reply import wrapped
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = zoo_kernel("good")
EIGHT = launching.rewritten(PLAIN, "k.py", Launch(8))
BETTER = PLAIN + b"# better\n"


class Scripted:
    """Answers stage by stage; what it was asked is kept."""

    name = "scripted"

    def __init__(self, **stages: bytes) -> None:
        self._stages = stages
        self.asked: dict[str, str] = {}
        self.begun_with: bytes | None = None

    async def propose(self, request: Request) -> Reply:
        self.asked[f"{request.stage}-{request.round}"] = request.prompt.turns[-1].text
        self.begun_with = request.files.get("rmsnorm_triton.py")
        if request.stage not in self._stages:
            raise RepliesExhausted(f"no reply for {request.stage}")
        text = wrapped("Here.", self._stages[request.stage].decode(), "rmsnorm_triton.py")
        return Reply(text, "a model", Usage(1.0, 1000, 200))


async def play(op: Op, tmp_path: Path, agent: Scripted | Given, scripts: dict[bytes, Script], *set_: str) -> Run:
    judge = ScriptedJudge({key(kernel): script for kernel, script in scripts.items()}, tmp_path / "judged")
    return await run_op(op, agent, judge, config.load(overrides=set_), tmp_path / "workspaces", Silent())  # type: ignore[arg-type]


def jobs(tmp_path: Path) -> list[str]:
    return [line.split()[0] for line in (tmp_path / "judged").read_text().splitlines()]


SLOW = Script(Status.PASSED, 60.0, {Launch(8): 40.0, Launch(16): 45.0, Launch(8, 2): 40.1})


async def test_what_wins_the_sweep_is_written_down_judged_and_measured(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct=PLAIN)
    run = await play(rmsnorm, tmp_path, agent, {PLAIN: SLOW, EIGHT: Script(Status.PASSED, 40.0)})
    assert [(one.stage, one.round, one.agent) for one in run.attempts] == [
        ("correct", 1, "scripted"),
        ("launch", 0, "launch-sweep"),
    ]
    assert run.best == 2 and run.verdict is not None and run.verdict.decision is Decision.MERGE
    assert jobs(tmp_path) == ["judge", "measure", "sweep", "judge", "measure"]
    folder = tmp_path / "workspaces" / "runs" / run.id
    assert (folder / "sweeps" / "01" / "swept.json").is_file()
    assert "num_warps=8" in (folder / "attempts" / "02-launch-0" / "job" / "rmsnorm_triton.py").read_text()
    decided = (folder / "DECISION.md").read_text()
    assert "## Launch parameters" in decided and "2. launch, by launch-sweep: **PASSED**" in decided
    assert list(agent.asked) == ["correct-1"], "no model is asked for what a sweep can find"


async def test_what_the_sweep_promised_and_did_not_keep_is_discarded(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(correct=PLAIN)
    run = await play(rmsnorm, tmp_path, agent, {PLAIN: SLOW, EIGHT: Script(Status.PASSED, 60.0)})
    assert run.best == 1 and any("discarded" in remark for remark in run.remarks)
    run = await play(rmsnorm, tmp_path / "wrong", agent, {PLAIN: SLOW, EIGHT: Script(Status.NONDETERMINISTIC)})
    assert run.best == 1 and run.attempts[1].status is Status.NONDETERMINISTIC


async def test_the_next_prompt_holds_the_table_and_where_the_time_goes(rmsnorm: Op, tmp_path: Path) -> None:
    scripts = {PLAIN: Script(Status.PASSED, 60.0), BETTER: Script(Status.PASSED, 40.0)}
    agent = Scripted(correct=PLAIN, optimize=BETTER)
    run = await play(rmsnorm, tmp_path, agent, scripts)
    assert [one.stage for one in run.attempts] == ["correct", "optimize"], "the file as it is keeps up: no attempt"
    assert any("attempt 1 stay: as written it keeps up with all 30 ways" in remark for remark in run.remarks)
    told = agent.asked["optimize-1"]
    for part in (
        *("# Launch parameters", "| as written | 1.000 |", "Where the time goes:"),
        *("0.83 times the speed of torch.compile; 17 % of the ceiling, where that reaches 20 %",),
        "a plain call takes 20.0 µs beyond the kernel",
    ):
        assert part in told, part


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (PLAIN.replace(b"eps, BLOCK=", b"eps, num_warps=4 if N < 9 else 8, BLOCK="), "num_warps is no literal"),
        (
            PLAIN.replace(b"@triton.jit", b"@triton.autotune(configs=[triton.Config({})], key=['N'])\n@triton.jit"),
            "autotuned",
        ),
    ],
)
async def test_launches_that_cannot_be_edited_stay_and_it_is_said(
    rmsnorm: Op, tmp_path: Path, code: bytes, why: str
) -> None:
    run = await play(rmsnorm, tmp_path, Scripted(correct=code), {code: SLOW})
    assert [one.stage for one in run.attempts] == ["correct"]
    assert any(
        remark.startswith("The launch parameters of attempt 1 stay: ") and why in remark for remark in run.remarks
    )


async def test_a_persons_kernel_that_is_slow_is_explained_and_improved(rmsnorm: Op, tmp_path: Path) -> None:
    agent = Scripted(optimize=BETTER)
    scripts = {PLAIN: Script(Status.PASSED, 60.0), BETTER: Script(Status.PASSED, 40.0)}
    given = Given(agent, PLAIN.decode(), "rmsnorm_triton.py")
    run = await play(rmsnorm, tmp_path, given, scripts, "loop.given=mine.py")
    assert [(one.stage, one.round, one.agent) for one in run.attempts] == [
        ("correct", 0, "person"),
        ("optimize", 1, "scripted"),
    ]
    assert run.best == 2 and run.verdict is not None and run.verdict.decision is Decision.MERGE
    assert agent.begun_with == PLAIN
    assert list(agent.asked) == ["optimize-1"] and "# better" not in agent.asked["optimize-1"]


async def test_a_persons_kernel_that_fails_is_what_a_model_repairs(rmsnorm: Op, tmp_path: Path) -> None:
    agent, wrong = Scripted(correct=PLAIN), zoo_kernel("divides_by_block")
    scripts = {wrong: Script(Status.WRONG_VALUES), PLAIN: Script(Status.PASSED, 40.0)}
    given = Given(agent, wrong.decode(), "rmsnorm_triton.py")
    run = await play(rmsnorm, tmp_path, given, scripts, "loop.given=mine.py", "loop.rounds=1")
    assert [(one.round, one.status) for one in run.attempts] == [(0, Status.WRONG_VALUES), (1, Status.PASSED)]
    assert agent.begun_with == wrong, "also where an agent works in the tree itself"


async def test_a_persons_kernel_without_a_model_is_measured_and_explained(rmsnorm: Op, tmp_path: Path) -> None:
    given = Given(Nobody(), PLAIN.decode(), "rmsnorm_triton.py")
    run = await play(rmsnorm, tmp_path, given, {PLAIN: Script(Status.PASSED, 60.0)}, "loop.given=mine.py")
    assert run.verdict is not None and run.verdict.decision is Decision.REWORK
    assert any("there is no model to ask for stage 'optimize'" in remark for remark in run.remarks)
    decided = (tmp_path / "workspaces" / "runs" / run.id / "DECISION.md").read_text()
    assert "Where the time goes:" in decided and "1. correct, by person: **PASSED**" in decided


async def test_a_kernel_that_is_slower_at_few_shapes_is_merged_without_them(rmsnorm: Op, tmp_path: Path) -> None:
    """Only once nothing is left to try: before that another stage may mend them."""
    uneven = Script(Status.PASSED, 40.0, elsewhere=(40.0, 40.0, 60.0))
    run = await play(rmsnorm, tmp_path, Scripted(correct=PLAIN), {PLAIN: uneven}, "loop.stages=[correct,optimize]")
    assert run.verdict is not None and run.verdict.decision is Decision.REWORK

    run = await play(rmsnorm, tmp_path / "all", Scripted(correct=PLAIN), {PLAIN: uneven}, "loop.stages=[correct]")
    assert run.verdict is not None and run.verdict.decision is Decision.MERGE
    assert run.measurement is not None and run.measurement.slowest_speedup == pytest.approx(1.25)
    assert "outside its envelope: 4096x4099 float16, at 0.833 times torch.compile" in run.verdict.reason
    decided = (tmp_path / "all" / "workspaces" / "runs" / run.id / "DECISION.md").read_text()
    assert decided.count("4096x4099 float16") > 1, "it is still in the table"


@pytest.mark.parametrize("elsewhere", [(40.0, 60.0, 60.0), (52.0, 52.0, 52.0)])
async def test_a_kernel_that_is_slower_at_many_is_not(
    rmsnorm: Op, tmp_path: Path, elsewhere: tuple[float, ...]
) -> None:
    scripts = {PLAIN: Script(Status.PASSED, 20.0, elsewhere=elsewhere)}
    run = await play(rmsnorm, tmp_path, Scripted(correct=PLAIN), scripts, "loop.stages=[correct]")
    assert run.verdict is not None and run.verdict.decision is Decision.ABANDON
    assert run.verdict.reason.startswith("Faster on the whole but slower somewhere")
    assert run.measurement is not None and not run.measurement.excluded_shapes


async def test_a_kernel_may_have_to_hold_everywhere(rmsnorm: Op, tmp_path: Path) -> None:
    scripts = {PLAIN: Script(Status.PASSED, 40.0, elsewhere=(40.0, 40.0, 60.0))}
    settings = ("loop.stages=[correct]", "decision.outside_share=0")
    run = await play(rmsnorm, tmp_path, Scripted(correct=PLAIN), scripts, *settings)
    assert run.verdict is not None and run.verdict.decision is Decision.ABANDON


async def test_a_kernel_that_overwrites_its_input_is_not_timed_and_it_is_said(rmsnorm: Op, tmp_path: Path) -> None:
    """What a replay wrote the next would begin with: every honest kernel would be convicted."""
    outputs = {name: one.model_copy(update={"in_place": "x"}) for name, one in rmsnorm.spec.outputs.items()}
    op = Op(rmsnorm.folder, rmsnorm.spec.model_copy(update={"outputs": outputs}), rmsnorm.reference)
    run = await play(op, tmp_path, Scripted(correct=PLAIN), {PLAIN: Script(Status.PASSED)})
    assert run.verdict is not None and run.verdict.decision is Decision.UNMEASURED
    assert "kernels of rmsnorm overwrite x" in run.verdict.reason
    assert jobs(tmp_path) == ["judge"]
    judge = ScriptedJudge({}, tmp_path / "judged")
    with pytest.raises(UsageError, match="kernels of rmsnorm overwrite x"):
        await measuring.started(judge, config.load(), op)  # type: ignore[arg-type]
