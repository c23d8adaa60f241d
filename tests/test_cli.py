"""The command line as a person meets it: real processes, exit codes, one line for what is wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from orchestrator import ops, resources
from orchestrator.cli import options
from orchestrator.cli.run import _next
from orchestrator.records import Decision, Run, Status, Verdict, from_json
from tests.agents.loopback import closed_port

GOOD = str(Path(__file__).parent / "zoo" / "kernels" / "good.py")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def orchestrator(
    folder: Path, *arguments: str, stdout: int | IO[str] = subprocess.PIPE, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in KEYS} | variables
    own = str(Path(__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (variables.get("PYTHONPATH"), own)))
    command = [sys.executable, "-m", "orchestrator", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def test_the_main_command(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("agent recorded: replays recorded replies") and "calls no model" in lines[0]
    assert any(line.strip().startswith("PASSED: 92 of 92 cases") for line in lines)
    assert any(line.startswith("UNMEASURED: ") for line in lines)
    assert "\x1b" not in result.stdout, "no terminal, no control codes"
    (decision,) = (tmp_path / "workspaces" / "runs").glob("*/DECISION.md")
    assert decision.read_text().startswith("# UNMEASURED: RMSNorm")
    run = decision.parent.name
    assert lines[-1] == f"next: explain {run}, measure {run} (on a GPU), adopt {run} --reason TEXT"
    assert orchestrator(tmp_path, "ledger", "costs").stdout == "no run has asked a model yet\n"
    assert lines[1].startswith("rmsnorm: 32 of 32 decoys rejected in "), "the op's own checker is checked first"


@pytest.mark.parametrize(
    ("decision", "said"),
    [(Decision.MERGE, "next: explain r-1, export rmsnorm --to DIR, report"), (Decision.ESCALATE, ""), (None, "")],
)
def test_what_to_do_next_is_said_of_a_kernel_that_is_worth_it(decision: Decision | None, said: str) -> None:
    verdict = Verdict(decision, "why") if decision else None
    run = Run("r-1", "rmsnorm", "run/r-1", "0" * 40, "2026-01-01T00:00:00+00:00", "recorded", verdict=verdict)
    assert _next(run, options.WORKSPACES) == said


def test_json_is_the_record_and_nothing_else(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu", "--json", "--workspaces", "elsewhere")
    assert result.returncode == 0, result.stderr
    run = from_json(Run, result.stdout)
    assert run.attempts[-1].status is Status.PASSED
    assert "round 1" in result.stderr
    assert result.stderr.endswith(" --reason TEXT; each with --workspaces elsewhere\n")
    assert (tmp_path / "elsewhere" / "rmsnorm.git").is_dir()


def test_dry_run_prints_the_prompt_and_keeps_nothing(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu", "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "Write `rmsnorm_triton.py`" in result.stdout and "judged with Triton" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--op", "rmsnrm"], "did you mean rmsnorm"),
        (["--op", "rmsnorm", "--agent", "opnai"], "openai"),
        (["--op", "rmsnorm", "--agent", "anthropic"], "ANTHROPIC_API_KEY"),
        (["--op", "rmsnorm", "--agent", "openai"], "OPENAI_API_KEY"),
        (["--op", "rmsnorm", "-c", "loop.round=2"], "did you mean loop.rounds"),
        (["--op", "rmsnorm", "--device", "tpu"], "judge.device"),
        (["--op", "rmsnorm", "--rounds", "0"], "loop.rounds"),
        (["--op", "rmsnorm", "--config", "none.yaml"], "none.yaml"),
        (["--op", "rmsnorm", "--seed", "99999999999999999999"], "judge.seed"),
        (["--op", "rmsnorm", "-c", "judge.seed=-1"], "judge.seed"),
        (["--op", "rmsnorm", "-c", "measure.round=2"], "did you mean measure.rounds"),
        (["--op", "rmsnorm", "--from", "mine.py"], "no file mine.py"),
        (["--ops", "rmsnorm", "--from", "mine.py"], "--from is for a run of one op"),
        (["bench", "kernel.py", "--op", "rmsnorm", "-c", "judge.device=cpu"], "nothing to measure on"),
        (["bench", "kernel.py"], "--op NAME"),
        (["measure", "rmsnorm-1", "-c", "judge.device=cpu"], "nothing to measure on"),
        (["ledger", "costs"], "there is no ledger in workspaces"),
        (["--op", "kernelbench:"], "kernelbench:FILE"),
        (["adopt", "rmsnorm-1"], "--reason TEXT"),
        (["adopt", "rmsnorm-1", "--reason", "it is good"], "no run rmsnorm-1"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    result = orchestrator(tmp_path, *arguments)
    assert result.returncode == 2
    error = result.stderr.strip()
    assert said in error and "\n" not in error and error.startswith("error: ")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind by a command that could not be carried out"


def test_an_unknown_option_is_exit_2(tmp_path: Path) -> None:
    result = orchestrator(tmp_path, "--bogus")
    assert result.returncode == 2 and "--bogus" in result.stderr


@pytest.mark.parametrize("command", [["--op", "rmsnorm"], ["verify", GOOD, "--op", "rmsnorm"], ["--ops", "rmsnorm"]])
def test_no_gpu_where_one_is_demanded_is_exit_2(tmp_path: Path, command: list[str]) -> None:
    recorded = ["-c", "agent.name=recorded"]
    result = orchestrator(tmp_path, *command, *recorded, "--device", "gpu", CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "no GPU is visible" in result.stderr and "judge.log" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["bench", "kernel.py", "--op", "rmsnorm"], ["measure", "rmsnorm-1"]])
def test_measuring_without_a_gpu_says_so_in_one_line(tmp_path: Path, command: list[str]) -> None:
    result = orchestrator(tmp_path, *command, CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 2
    assert result.stderr.startswith("error: there is nothing to measure on") and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_cause_of_no_connection_is_named(tmp_path: Path) -> None:
    command = ["--op", "rmsnorm", "--device", "cpu", "--model", "m", "-c", "agent.max_tries=1"]
    result = orchestrator(tmp_path, *command, OPENAI_BASE_URL=f"http://127.0.0.1:{closed_port()}/v1")
    assert result.returncode == 3 and result.stderr.count("\n") == 1
    assert "Connect call failed" in result.stderr or "Connection refused" in result.stderr
    assert " in 1 request and " in result.stderr


@pytest.mark.parametrize("place", ["/dev/null", "/proc/none"])
def test_workspaces_that_cannot_be_written_are_one_line(tmp_path: Path, place: str) -> None:
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu", "--workspaces", place)
    assert result.returncode == 3 and result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: cannot write {place}/judge.log: ")


def test_a_foreign_repository_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "workspaces" / "rmsnorm.git"
    subprocess.run(["git", "init", "-q", "--bare", str(foreign)], check=True)
    before = sorted(path.name for path in foreign.rglob("*"))
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu")
    assert result.returncode == 3
    assert "rmsnorm.git" in result.stderr and "Traceback" not in result.stderr
    assert sorted(path.name for path in foreign.rglob("*")) == before


def test_ops_lists_the_ops(tmp_path: Path) -> None:
    assert "rmsnorm" in orchestrator(tmp_path, "ops").stdout


def test_an_op_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    shutil.copytree(resources.shipped("configs") / "ops" / "rope", own := tmp_path / "ops" / "my_rope")
    (own / "reference.py").unlink()
    (own / "reference.py").mkdir()
    result = orchestrator(tmp_path, "ops")
    assert (result.returncode, result.stderr) == (0, "")
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "cannot be read: ops/my_rope/" in rows["my_rope"] and "rmsnorm" in rows


def test_a_damaged_repository_is_one_line_with_its_remedy(tmp_path: Path) -> None:
    assert orchestrator(tmp_path, "--op", "vector_add", "--device", "cpu").returncode == 0
    (tmp_path / "workspaces" / "vector_add.git" / "HEAD").write_text("junk\n")
    result = orchestrator(tmp_path, "ops")
    assert result.returncode == 3 and result.stderr.count("\n") == 1
    assert "vector_add.git" in result.stderr and "restore it from a copy or move it away" in result.stderr


def test_ops_show_prints_what_a_model_sees(tmp_path: Path) -> None:
    shown = orchestrator(tmp_path, "ops", "show", "quantize_int8_rowwise").stdout
    spec = ops.load("quantize_int8_rowwise", resources.shipped("configs") / "ops").workspace_files()["SPEC.md"].decode()
    assert shown.strip() == spec.strip() and "int8 at most half a step and 4.0 thousandths" in shown


def test_ops_show_says_which_ops_there_are(tmp_path: Path) -> None:
    done = orchestrator(tmp_path, "ops", "show", "ropes")
    assert done.returncode == 2 and "did you mean rope?" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("kernel", "decision"), [("kernels/divides_by_block.py", "ESCALATE"), ("policy/cheats/rebind_torch.py", "REJECT")]
)
def test_a_wrong_kernel_of_a_person_and_no_model_is_decided(tmp_path: Path, kernel: str, decision: str) -> None:
    mine = Path(__file__).parent / "zoo" / kernel
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu", "--from", str(mine))
    assert (result.returncode, result.stderr) == (1, "")
    assert f"{decision}: The kernel that was given" in result.stdout and "choose an agent: anthropic" in result.stdout
    (folder,) = (tmp_path / "workspaces" / "runs").iterdir()
    assert (folder / "DECISION.md").read_text().startswith(f"# {decision}: ")
    assert not from_json(Run, (folder / "run.json").read_text()).error


def test_replies_that_run_out_name_the_other_agents(tmp_path: Path) -> None:
    """A time limit that nothing can meet makes the only recorded reply fail."""
    result = orchestrator(tmp_path, "--op", "rmsnorm", "--device", "cpu", "-c", "judge.limits.call_s=0.000001")
    assert result.returncode == 2
    assert "anthropic" in result.stderr and "inbox" in result.stderr
    (prompt,) = (tmp_path / "workspaces" / "runs").glob("*/attempts/02-*/prompt.md")
    assert "TIMEOUT" in prompt.read_text()


@pytest.mark.parametrize("command", [["ops", "show", "rope"], ["--op", "rmsnorm", "--device", "cpu"]])
def test_a_full_standard_output_is_one_line_and_the_work_is_done(tmp_path: Path, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        result = orchestrator(tmp_path, *command, stdout=full)
    assert result.returncode == 3
    assert result.stderr == "error: standard output cannot be written: [Errno 28] No space left on device\n"
    assert len(list(tmp_path.glob("workspaces/runs/*/DECISION.md"))) == command.count("--op")


@pytest.mark.parametrize("command", [["--op", "rmsnorm"], ["--ops", "rmsnorm,rope", "--agent", "recorded"]])
def test_a_reader_who_leaves_ends_nothing(tmp_path: Path, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        result = orchestrator(tmp_path, *command, "--device", "cpu", stdout=pipe)
    assert (result.returncode, result.stderr) == (0, "")
    for record in tmp_path.glob("workspaces/runs/*/run.json"):
        run = from_json(Run, record.read_text())
        assert run.verdict is not None and not run.error


def test_ctrl_c_leaves_a_readable_run(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "orchestrator", "--op", "rmsnorm", "--device", "cpu", "--agent", "inbox"]
    pipe = subprocess.PIPE
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=heard
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("waiting for the reply"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    (folder,) = (tmp_path / "workspaces" / "runs").iterdir()
    assert errors == f"interrupted; the record so far is in {folder.relative_to(tmp_path)}\n"
    assert from_json(Run, (folder / "run.json").read_text()).error == "interrupted"
    assert (folder / "attempts" / "01-correct-1" / "prompt.md").is_file()
