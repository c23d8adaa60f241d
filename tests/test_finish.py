"""The end of a run: what a measurement makes of it, and taking it up again. Real git; figures are invented."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import config, finish, measuring, ops, rounds
from orchestrator.attempt import Judged
from orchestrator.decide import Thresholds, decide
from orchestrator.errors import UsageError, WorkspaceError
from orchestrator.measured import Measured
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.recorder import Recorder
from orchestrator.records import (
    AuditFinding,
    CaseResult,
    Decision,
    Judging,
    Part,
    Prompt,
    Reply,
    Report,
    Run,
    Severity,
    Status,
    Usage,
    Verdict,
    from_json,
)
from orchestrator.settle import conclude
from orchestrator.watch import Silent
from tests.measurements import measured, shape

H200 = Judging("NVIDIA H200", False, {"torch": "2.11.0", "triton": "3.6.0"}, ())
CASE = CaseResult(
    *("a", {"M": 1, "N": 7}, "float16", 1.0, False, Status.PASSED),
    **{"max_abs": 1e-3, "max_rel": 1e-3, "tolerance_ratio": 0.2, "precision": 0.9},
)
GOOD = Report(Status.PASSED, "1 of 1 cases passed", cases=(CASE,), expected_cases=1, nonce="n", device="NVIDIA H200")
BAD = Report(Status.WRONG_VALUES, "wrong")
NOTED = AuditFinding(
    *("host-copy", Severity.MEDIUM, Part.PERFORMANCE, "k.py", 7, 1, "x = x.contiguous()", "x is copied"),
    *("It costs a pass.", "Take strides."),
)


def git(workspaces: Path, *arguments: str) -> str:
    command = ["git", "-C", str(workspaces / "rmsnorm.git"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def recorder_of(op: Op, workspaces: Path, *judged: Judged) -> Recorder:
    """A run in which these verdicts were given, one a round."""
    recorder = Recorder.open(op, "scripted", config.load(), workspaces, H200, Silent())
    prompt, reply = Prompt("", ()), Reply("", "model", Usage(0.0))
    for round_, one in enumerate(judged, 1):
        folder = recorder.asked(prompt, "correct", round_)
        recorder.judged("correct", round_, reply, one, folder)
    return recorder


def decided(recorder: Recorder, found: Measured) -> Run:
    """The run after that measurement, decided by the table and concluded."""
    (challenger,) = rounds.challengers(recorder.run)
    reason = recorder.measured(challenger, found, recorder.rivals(challenger), 0, Thresholds().margin_floor)
    run = recorder.run
    conclude(
        recorder,
        decide(
            *(run.attempts[-1].status, run.best is not None, run.measurement, Thresholds()),
            unmeasured_reason=reason,
            rounds=3,
        ),
    )
    return recorder.run


def test_a_faster_kernel_becomes_the_champion_with_its_decision(rmsnorm: Op, tmp_path: Path) -> None:
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"fast = 1\n")), measured(shape(40)))
    assert run.verdict is not None and run.verdict.decision is Decision.MERGE and run.exit_code == 0
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "fast = 1"
    assert "1.250" in git(tmp_path, "show", "main:DECISION.md")
    assert git(tmp_path, "log", "-1", "--format=%s", "main").startswith(f"merge {run.branch}: Faster")
    assert from_json(Run, (tmp_path / "runs" / run.id / "run.json").read_text()) == run


def test_a_slower_one_stays_on_its_branch_with_why(rmsnorm: Op, tmp_path: Path) -> None:
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"slow = 1\n")), measured(shape(60)))
    assert run.verdict is not None and run.verdict.decision is Decision.ABANDON and run.exit_code == 1
    assert "rmsnorm_triton.py" not in git(tmp_path, "ls-tree", "--name-only", "main").split()
    assert "it would pay from 1.020 times on" in git(tmp_path, "show", f"{run.branch}:DECISION.md")


def test_the_next_run_meets_the_champion(rmsnorm: Op, tmp_path: Path) -> None:
    decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"fast = 1\n")), measured(shape(40)))
    rivals = recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"faster = 1\n")).rivals(1)
    assert rivals.champion == b"fast = 1\n" and rivals.main == git(tmp_path, "rev-parse", "main")


def test_two_winners_against_the_same_champion_are_not_both_merged(rmsnorm: Op, tmp_path: Path) -> None:
    first, second = (recorder_of(rmsnorm, tmp_path, Judged(GOOD, f"k = {n}\n".encode())) for n in (1, 2))
    rivals = second.rivals(1)
    decided(first, measured(shape(40)))
    second.measured(1, measured(shape(39)), rivals, 0, 0.02)
    with pytest.raises(WorkspaceError, match=f"measure {second.run.id}"), second.recording():
        conclude(second, Verdict(Decision.MERGE, "Faster."))
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "k = 1"
    assert from_json(Run, (second.folder / "run.json").read_text()).exit_code == 3


def test_who_is_convicted_while_it_is_timed_has_not_passed(rmsnorm: Op, tmp_path: Path) -> None:
    convicted = measured(status=Status.WRONG_VALUES, message="7 of 9 elements wrong in a timed replay")
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"cheat = 1\n")), convicted)
    assert run.best is None and run.attempts[0].status is Status.WRONG_VALUES
    assert run.verdict is not None and run.verdict.decision is Decision.ESCALATE
    assert "while it was timed: 7 of 9 elements" in git(tmp_path, "show", f"{run.branch}:DECISION.md")
    lies = measured(status=Status.TAMPERED, message="two clocks")
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"liar = 1\n")), lies)
    assert run.verdict is not None and run.verdict.decision is Decision.REJECT


def test_a_time_that_cannot_be_is_no_success(rmsnorm: Op, tmp_path: Path) -> None:
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"x = 1\n")), measured(shape(5, ideal_us=10)))
    assert run.verdict is not None and run.verdict.decision is Decision.UNMEASURED
    assert "a cheat, and a person" in run.verdict.reason and run.measurement is None


def test_a_branch_ends_with_its_best_kernel(rmsnorm: Op, tmp_path: Path) -> None:
    recorder = recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"best = 1\n"), Judged(BAD, b"later = 1\n"))
    run = decided(recorder, measured(shape(40)))
    assert run.best == 1
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "best = 1"


def stage_by_stage(op: Op, workspaces: Path, *found: Measured) -> Recorder:
    """A run in which each stage brought a kernel that passed and was measured so."""
    recorder = recorder_of(op, workspaces)
    for number, measurement in enumerate(found, 1):
        folder = recorder.asked(Prompt("", ()), "optimize", number)
        judged = Judged(GOOD, f"k = {number}\n".encode())
        recorder.judged("optimize", number, Reply("", "model", Usage(0.0)), judged, folder)
        (challenger,) = rounds.challengers(recorder.run)
        assert challenger == number
        left = len(found) - number
        recorder.measured(challenger, measurement, recorder.rivals(challenger), left, Thresholds().margin_floor)
    return recorder


def test_a_later_kernel_leads_only_if_it_beats_the_best_so_far(rmsnorm: Op, tmp_path: Path) -> None:
    faster = stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), measured(shape(30, best=40)))
    assert faster.run.best == 2 and faster.run.measurement is not None
    assert faster.run.measurement.speedup_low == pytest.approx(50 / 30), "against the baselines, not the earlier best"
    assert faster.run.measurement.rungs_left == 0
    same = stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), measured(shape(39.6, best=40)))
    assert same.run.best == 1 and same.run.measurement is not None
    assert same.run.measurement.speedup_low == pytest.approx(50 / 40) and same.run.measurement.rungs_left == 0
    assert same.run.remarks[-1] == (
        "Attempt 2 is correct, not faster than attempt 1 beyond the noise: discarded; 1.01 times its speed"
    )
    assert same.rivals(2).best == b"k = 1\n" and same.rivals(1).best is None


def test_what_was_discarded_is_told_with_where_it_was_better(rmsnorm: Op, tmp_path: Path) -> None:
    """The next prompt has it: two kernels that are each better somewhere are worth a third."""
    mixed = measured(shape(50, best=40), shape(31, best=40, dims=(8192, 128)))
    recorder = stage_by_stage(rmsnorm, tmp_path, measured(shape(40), shape(40, dims=(8192, 128))), mixed)
    assert recorder.run.best == 1
    (line,) = [line for line in recorder.tried() if "discarded" in line]
    assert line.endswith("from 0.80 at 4096x4096 float16 to 1.29 at 8192x128 float16")


def test_noise_is_the_margin_of_a_later_kernel_too(rmsnorm: Op, tmp_path: Path) -> None:
    noisy = measured(shape(37, best=40, twin=1.10))
    assert stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), noisy).run.best == 1
    quiet = measured(shape(37, best=40, twin=1.01))
    assert stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), quiet).run.best == 2


def test_what_is_taken_up_again_is_the_best_not_the_newest(rmsnorm: Op, tmp_path: Path) -> None:
    recorder = stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), measured(shape(39.6, best=40)))
    recorder.rejudged(GOOD)
    assert recorder.run.best == 1 and recorder.run.measurement is None and rounds.challengers(recorder.run) == (1,)


def test_a_later_kernel_that_is_convicted_leaves_the_best(rmsnorm: Op, tmp_path: Path) -> None:
    convicted = measured(status=Status.TAMPERED, message="two clocks")
    recorder = stage_by_stage(rmsnorm, tmp_path, measured(shape(40)), convicted)
    assert recorder.run.best == 1 and recorder.run.attempts[1].status is Status.TAMPERED
    assert recorder.run.measurement is not None and rounds.challengers(recorder.run) == ()
    conclude(recorder, Verdict(Decision.MERGE, "Faster."))
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "k = 1"


GENERATED = """import torch
# kernel path: /home/someone/inductor/fy/c.py
triton_per_fused = async_compile.triton('triton_per_fused', '''
import triton
@triton_heuristics.persistent_reduction(size_hints={'x': 4096})
@triton.jit
def triton_per_fused(in_ptr0, XBLOCK: tl.constexpr):
    tl.load(in_ptr0)
''', device_str='cuda')
def call(args): ...
# of several configurations it picked XBLOCK=8, num_warps=4"""


@pytest.mark.parametrize(("stage", "advice"), [("optimize", "loads are wide"), ("tune", "persistent grid")])
def test_the_next_stage_is_told_what_was_measured(rmsnorm: Op, stage: str, advice: str) -> None:
    slow = replace(shape(60), dims={"M": 65536, "N": 128})
    found = measured(shape(40), slow, generated={"torch.compile-65536x128-float16.py": GENERATED})
    text = Prompts(rmsnorm, H200, 3).improve(stage, (), b"def the_kernel(): ...\n", found, (NOTED,)).turns[0].text
    told = (
        "def the_kernel()",
        "- 65536x128 float16: 0.833 times the speed of torch.compile",
        "def triton_per_fused(in_ptr0, XBLOCK: tl.constexpr):\n    tl.load(in_ptr0)\n",
        "# of several configurations it picked XBLOCK=8, num_warps=4\n",
        "ceiling",
        "- line 7, `x = x.contiguous()`: x is copied. Take strides.",
        advice,
    )
    for part in told:
        assert part in text, f"the prompt does not hold {part!r}"
    assert "/home/" not in text and "def call" not in text, "its machinery is quoted, with paths"
    assert text.index("- 65536x128") < text.index("- 4096x4096"), "the one that lags most comes first"


# --- taken up again ---------------------------------------------------------------------------------------------------


def unmeasured(op: Op, workspaces: Path, report: Report = GOOD) -> Run:
    recorder = recorder_of(op, workspaces, Judged(report, b"fine = 1\n"))
    decision = Decision.UNMEASURED if report.passed else Decision.ESCALATE
    conclude(recorder, Verdict(decision, "As it was."))
    return recorder.run


def test_a_person_may_overrule(rmsnorm: Op, tmp_path: Path) -> None:
    run = unmeasured(rmsnorm, tmp_path)
    ended = finish.find(run.id, tmp_path, lambda name: rmsnorm)
    adopted = finish.adopt(ended, "it is good enough for our shapes", Silent())
    assert adopted.exit_code == 0
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "fine = 1"
    text = git(tmp_path, "show", "main:DECISION.md")
    assert "Adopted by a person: it is good enough for our shapes" in text
    assert "the decision was UNMEASURED: As it was." in text


def test_an_adopted_kernels_figures_are_its_own(rmsnorm: Op, tmp_path: Path) -> None:
    """The later kernel was measured too, and discarded; where a stage was measured last says nothing of who leads."""
    recorder = recorder_of(rmsnorm, tmp_path)
    for number, found in enumerate((measured(shape(40)), measured(shape(60, best=40))), 1):
        folder = recorder.asked(Prompt("", ()), "optimize", number)
        judged = Judged(GOOD, f"k = {number}\n".encode())
        recorder.judged("optimize", number, Reply("", "model", Usage(0.0)), judged, folder)
        place, rivals = recorder.measures(number)
        measuring.keep(found, place)
        recorder.measured(number, found, rivals, 0, Thresholds().margin_floor)
    conclude(recorder, Verdict(Decision.ESCALATE, "As it was."))
    finish.adopt(finish.find(recorder.run.id, tmp_path, lambda name: rmsnorm), "the first is good", Silent())
    assert git(tmp_path, "show", "main:rmsnorm_triton.py") == "k = 1"
    text = git(tmp_path, "show", "main:DECISION.md")
    assert "40.00" in text and "60.00" not in text


def test_adopting_needs_a_reason(rmsnorm: Op, tmp_path: Path) -> None:
    ended = finish.find(unmeasured(rmsnorm, tmp_path).id, tmp_path, lambda name: rmsnorm)
    with pytest.raises(UsageError, match="reason"):
        finish.adopt(ended, " ", Silent())


def test_runs_that_cannot_be_taken_up(rmsnorm: Op, tmp_path: Path) -> None:
    run = unmeasured(rmsnorm, tmp_path)
    with pytest.raises(UsageError, match=f"did you mean {run.id}"):
        finish.find(run.id[:-1], tmp_path, lambda name: rmsnorm)
    failed = unmeasured(rmsnorm, tmp_path, BAD)
    with pytest.raises(UsageError, match="no attempt"):
        finish.find(failed.id, tmp_path, lambda name: rmsnorm)
    spec = rmsnorm.spec.model_copy(update={"precision": 5.0})
    with pytest.raises(UsageError, match="has changed since"):
        finish.find(run.id, tmp_path, lambda name: ops.Op(rmsnorm.folder, spec, rmsnorm.reference))


@pytest.mark.asyncio(loop_scope="session")
async def test_only_what_is_not_decided_can_be_measured(rmsnorm: Op, tmp_path: Path) -> None:
    run = decided(recorder_of(rmsnorm, tmp_path, Judged(GOOD, b"slow = 1\n")), measured(shape(60)))
    ended = finish.find(run.id, tmp_path, lambda name: rmsnorm)

    class NotAsked:
        """No executor is started for what is refused."""

    with pytest.raises(UsageError, match="ended in ABANDON"):
        await finish.measure(ended, NotAsked(), config.load(), Silent())  # type: ignore[arg-type]
    assert replace(ended.run, seconds=0.0) == replace(run, seconds=0.0)
