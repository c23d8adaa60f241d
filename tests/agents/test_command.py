"""A command-line agent that behaves, and others that do not: where each ends, and what it could reach.

The agent is a script (cli_agent.py), all else is real: the launcher, Landlock, git, the guard. Verdicts come from a
table, as those of the real judge are not the point; one test, of the long ones, has the real judge.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator import config, kept
from orchestrator.agents import Agent, Request
from orchestrator.agents.choose import AgentOptions, choose
from orchestrator.agents.command import CommandAgent
from orchestrator.agents.given import Given
from orchestrator.agents.presets import Preset, find, names
from orchestrator.asking import Asking, Purse
from orchestrator.cli import app
from orchestrator.config import Budget
from orchestrator.errors import AgentError, UsageError
from orchestrator.executors.local import LocalExecutor
from orchestrator.judge import landlock
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.records import Decision, Prompt, Run, Status, Turn, from_json
from orchestrator.watch import Silent
from tests.conftest import ZOO
from tests.scripted_judge import Script, ScriptedJudge, key

CLI_AGENT = Path(__file__).with_name("cli_agent.py")
GOOD = ZOO / "kernels" / "good.py"
SECRET = "sk-not-for-the-agent-0123456789"
OWN = "sk-the-agent-has-this-one-0123456789"
CONFINED = pytest.mark.skipif(landlock.abi() < landlock.SCOPE_ABI, reason="needs Landlock ABI 6")


def preset(how: str, *arguments: object, **changes: object) -> Preset:
    """The scripted agent in one of its ways, as a preset."""
    words = [sys.executable, str(CLI_AGENT), how, *map(str, arguments)]
    return Preset.model_validate({"command": shlex.join(words), **changes})


def agent(how: str, *arguments: object, timeout_s: float = 60, **changes: object) -> CommandAgent:
    """The scripted agent in one of its ways."""
    return CommandAgent(preset(how, *arguments, **changes), lambda _: None, timeout_s=timeout_s)


def settings(rounds: int = 1, given: Path | None = None, samples: int = 1) -> config.Settings:
    loop = {"rounds": rounds, "samples": samples, **({} if given is None else {"given": str(given)})}
    return config.load(flags={"agent": {"name": "command", "command": "scripted"}, "loop": loop})


def play(
    op: Op, tmp_path: Path, asked: Agent, rounds: int = 1, given: Path | None = None, samples: int = 1
) -> tuple[Run, Path]:
    """A run with a table of verdicts; returns it and its folder."""
    table = {key(GOOD.read_bytes()): Script(Status.PASSED)}
    judge = ScriptedJudge(table, tmp_path / "judge.log")
    asking = Asking(asked, (Purse("op", Budget()),))
    try:
        asyncio.run(run_op(op, asking, judge, settings(rounds, given, samples), tmp_path / "workspaces", Silent()))
    finally:
        (folder,) = (tmp_path / "workspaces" / "runs").iterdir()
        run = from_json(Run, (folder / "run.json").read_bytes())
    return run, folder


def test_each_of_several_works_in_a_folder_of_its_own(rmsnorm: Op, tmp_path: Path) -> None:
    run, folder = play(rmsnorm, tmp_path, agent("behaves", GOOD), samples=2)
    assert [attempt.status for attempt in run.attempts] == [Status.PASSED] * 2
    first, second = (folder / "attempts" / name for name in ("01-correct-1", "02-correct-1"))
    assert str(said(folder, first.name)["folder"]) == str(first / "tree")
    assert str(said(folder, second.name)["folder"]) == str(second / "tree")
    assert not (first / "tree").exists() and not (second / "tree").exists()


def said(folder: Path, attempt: str = "01-correct-1") -> dict[str, object]:
    """What the scripted agent printed."""
    return dict(json.loads((folder / "attempts" / attempt / "reply.md").read_text()))


def committed(tmp_path: Path, run: Run) -> list[str]:
    repository = tmp_path / "workspaces" / "rmsnorm.git"
    command = ["git", "-C", str(repository), "ls-tree", "-r", "--name-only", run.branch]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_one_that_behaves_passes(rmsnorm: Op, tmp_path: Path) -> None:
    run, folder = play(rmsnorm, tmp_path, agent("behaves", GOOD))
    assert [attempt.status for attempt in run.attempts] == [Status.PASSED]
    assert run.verdict is not None and run.verdict.decision is Decision.MERGE  # the table also says how long it takes
    assert committed(tmp_path, run) == [
        *("DECISION.md", "SPEC.md", "bench.py", "ref.py", "rmsnorm_triton.py", "test_correctness.py")
    ]
    attempt = folder / "attempts" / "01-correct-1"
    assert said(folder)["prompt"] == (attempt / "prompt.md").read_text()
    assert "Write the one file rmsnorm_triton.py" in str(said(folder)["prompt"])
    assert not (attempt / kept.TREE).exists() and not (attempt / "work").exists()
    started = json.loads((attempt / "command.json").read_text())
    assert started["command"][2] == "behaves" and started["keys"] == [] and not started["network"]


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("edits_the_tests", {"test_correctness.py"}),
        ("plants", {"conftest.py", ".git"}),
        ("keeps_a_history", {".agent.history"}),
    ],
)
def test_what_else_it_changed_is_tampering(rmsnorm: Op, tmp_path: Path, how: str, where: set[str]) -> None:
    run, folder = play(rmsnorm, tmp_path, agent(how, GOOD))
    (attempt,) = run.attempts
    assert attempt.status is Status.TAMPERED
    assert {finding.where for finding in attempt.report.findings} == where
    assert run.verdict is not None and run.verdict.decision is Decision.REJECT
    assert "conftest.py" not in committed(tmp_path, run)
    assert not list(folder.rglob("pre-commit"))


def test_what_a_preset_says_it_leaves_is_taken_away(rmsnorm: Op, tmp_path: Path) -> None:
    run, _ = play(rmsnorm, tmp_path, agent("keeps_a_history", GOOD, leaves=[".agent.*"]))
    assert [attempt.status for attempt in run.attempts] == [Status.PASSED]


def test_a_repair_finds_what_it_left(rmsnorm: Op, tmp_path: Path) -> None:
    run, folder = play(rmsnorm, tmp_path, agent("repairs", GOOD), rounds=2)
    assert [attempt.status for attempt in run.attempts] == [Status.FALLBACK, Status.PASSED]
    assert said(folder)["there"] is False
    second = said(folder, "02-correct-2")
    assert second["there"] is True
    assert "is in the folder as you left it" in str(second["prompt"])


def test_a_kernel_that_a_person_has_is_there_to_be_repaired(rmsnorm: Op, tmp_path: Path) -> None:
    theirs = "def rmsnorm_triton(x, w, eps=1e-6):\n    return x\n"
    given = Given(agent("repairs", GOOD), theirs, "rmsnorm_triton.py")
    run, folder = play(rmsnorm, tmp_path, given, given=GOOD)
    assert [attempt.status for attempt in run.attempts] == [Status.FALLBACK, Status.PASSED]
    assert said(folder, "02-correct-1")["there"] is True


def test_one_that_hangs_is_ended_with_all_it_started(rmsnorm: Op, tmp_path: Path) -> None:
    pids = tmp_path / "granted" / "pids"
    pids.parent.mkdir()
    hanging = agent("hangs", pids, timeout_s=3, grants=[str(pids.parent)])
    with pytest.raises(AgentError, match=r"did not end within 3 s, and was ended with all that it had started"):
        play(rmsnorm, tmp_path, hanging)
    assert [gone(int(pid)) for pid in pids.read_text().split()] == [True, True, True]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_orchestrator_that_is_killed_takes_it_along(tmp_path: Path) -> None:
    pids = tmp_path / "granted" / "pids"
    pids.parent.mkdir()
    words = [sys.executable, str(CLI_AGENT), "hangs", str(pids)]
    code = (
        "import asyncio, pathlib\n"
        "from orchestrator.agents import Request\n"
        "from orchestrator.agents.command import CommandAgent\n"
        "from orchestrator.agents.presets import Preset\n"
        "from orchestrator.records import Prompt\n"
        f"agent = CommandAgent(Preset(command={shlex.join(words)!r}, grants=({str(pids.parent)!r},)), print)\n"
        f"asyncio.run(agent.propose(Request(Prompt('', ()), 'correct', 1, pathlib.Path({str(tmp_path)!r}))))\n"
    )
    orchestrator = subprocess.Popen([sys.executable, "-c", code])
    eventually(pids.is_file)
    orchestrator.kill()
    orchestrator.wait()
    eventually(lambda: all(gone(int(pid)) for pid in pids.read_text().split()))


def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@CONFINED
def test_no_key_is_found(rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").write_text(SECRET)
    spy = subprocess.Popen(["sleep", "600"], env={"ANTHROPIC_API_KEY": SECRET})
    try:
        # Relative to its folder: a file that the command names in full may be read.
        looking = agent("looks_for_keys", "../../../../../../home/key", environment={"OUTSIDER": str(spy.pid)})
        _, folder = play(rmsnorm, tmp_path, looking)
    finally:
        spy.kill()
        spy.wait()
    found = said(folder)
    assert SECRET not in json.dumps(found)
    own, others = found["own"], found["others"]
    assert isinstance(own, dict) and "ANTHROPIC_API_KEY" not in own
    assert isinstance(others, dict) and others[str(os.getpid())] == others[str(spy.pid)] == "PermissionError"
    assert found["memory"] == found["file"] == found["socket"] == found["kill"] == "PermissionError"


def test_it_gets_the_keys_its_preset_names_and_they_stay_out_of_the_record(
    rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", OWN)
    monkeypatch.setenv("OTHER_KEY", SECRET)
    _, folder = play(rmsnorm, tmp_path, agent("tells_its_key", GOOD, keys=["AGENT_KEY"]))
    assert said(folder) == {"key": "<AGENT_KEY>"}
    assert json.loads((folder / "attempts" / "01-correct-1" / "command.json").read_text())["keys"] == ["AGENT_KEY"]
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not [text for text in texts if OWN.encode() in text or SECRET.encode() in text]


def test_a_key_in_the_kernel_is_never_committed(rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", OWN)
    with pytest.raises(AgentError, match="wrote the value of AGENT_KEY into rmsnorm_triton.py; nothing of it was kept"):
        play(rmsnorm, tmp_path, agent("writes_its_key", GOOD, keys=["AGENT_KEY"]))
    every = [path.read_bytes() for path in (tmp_path / "workspaces").rglob("*") if path.is_file()]
    assert not [text for text in every if OWN.encode() in text]


@CONFINED
def test_one_that_writes_outside_cannot(rmsnorm: Op, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    run, folder = play(rmsnorm, tmp_path, agent("writes_outside", outside))
    assert set(said(folder).values()) <= {"PermissionError", "OSError"}
    assert [path.name for path in outside.iterdir()] == ["kept.txt"] and (outside / "kept.txt").read_text() == "kept"
    assert run.attempts[0].status is Status.TAMPERED  # a link in the kernel's place


def test_a_failure_of_the_agent_is_one_line_without_its_key(
    rmsnorm: Op, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", OWN)
    with pytest.raises(AgentError) as caught:
        play(rmsnorm, tmp_path, agent("fails", "no credit left", keys=["AGENT_KEY"]))
    name = Path(sys.executable).name
    assert str(caught.value) == f"{name} failed (exit code 7): no credit left <AGENT_KEY>"


@CONFINED
@pytest.mark.parametrize(
    ("network", "expected"),
    [(False, {"tcp": "PermissionError", "udp": "OSError"}), (True, {"tcp": "None", "udp": "0"})],
)
def test_the_network_is_as_the_preset_says(
    rmsnorm: Op, tmp_path: Path, network: bool, expected: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = agent("reaches", server.getsockname()[1], network=network)
        _, folder = play(rmsnorm, tmp_path, asked)
    assert said(folder) == expected


# Its system calls are refused by a filter, as a kernel without it refuses them.
WITHOUT_LANDLOCK = """
import os, sys
from orchestrator.judge import linux, seccomp
column, architecture = seccomp._ARCHITECTURES[seccomp.platform.machine()]
beginning = seccomp._beginning(column, architecture)
filter = [*beginning, *seccomp._refused(444), seccomp._op(seccomp._RETURN, seccomp._ALLOW)]
linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
linux.install_filter(b"".join(filter))
"""


def test_where_landlock_lacks_it_is_said_or_refused(tmp_path: Path) -> None:
    code = WITHOUT_LANDLOCK + (
        "import asyncio, pathlib\n"
        "from orchestrator.agents import Request\n"
        "from orchestrator.agents.command import CommandAgent\n"
        "from orchestrator.agents.presets import Preset\n"
        "from orchestrator.errors import AgentError\n"
        "from orchestrator.records import Prompt\n"
        "for required in (False, True):\n"
        "    agent = CommandAgent(Preset(command='true'), print, require_sandbox=required)\n"
        f"    request = Request(Prompt('', ()), 'correct', 1, pathlib.Path({str(tmp_path)!r}))\n"
        "    try: asyncio.run(agent.propose(request))\n"
        "    except AgentError as error: print('refused:', error)\n"
    )
    lines = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "not confined: file rules (no Landlock here: the agent can read and write whatever you can)" in lines
    (refused,) = (line for line in lines.splitlines() if line.startswith("refused:"))
    assert "could not be started: this machine lacks file rules" in refused


@pytest.mark.parametrize("asks", [("audit", str(GOOD), "--model"), ("ops", "new", "mine", "--from", "rows")])
def test_no_command_starts_it_unconfined_where_the_sandbox_is_required(tmp_path: Path, asks: tuple[str, ...]) -> None:
    started = tmp_path / "started"
    code = WITHOUT_LANDLOCK + "os.execv(sys.executable, [sys.executable, '-m', 'orchestrator', *sys.argv[1:]])"
    given = {"agent.command": f"touch {started}", "agent.timeout_s": 60, "judge.require_sandbox": True}
    overrides = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
    result = subprocess.run(
        [sys.executable, "-c", code, *asks, "--agent", "command", *overrides],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ZOO.parents[1])},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 3 and "this machine lacks file rules" in result.stderr, result.stderr
    assert not started.exists()


def test_the_launcher_imports_no_torch() -> None:
    code = "import sys, orchestrator.agents.launcher; print({'torch', 'triton', 'pydantic'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "set()"


def test_a_reply_in_the_tree_is_not_asked_for_twice(tmp_path: Path) -> None:
    folder = tmp_path / "attempt"
    folder.mkdir()
    asking = Asking(agent("behaves", GOOD), ())
    request = Request(Prompt("Write.", (Turn("user", "Do."),)), "correct", 1, folder, {"ref.py": b"x = 1\n"})
    reply = asyncio.run(asking.propose(request))
    kept.keep(reply, folder)
    (folder / kept.TREE / "rmsnorm_triton.py").write_text("as it was left\n")
    again = asyncio.run(asking.propose(request))
    assert again == reply and again.in_tree
    assert (folder / kept.TREE / "rmsnorm_triton.py").read_text() == "as it was left\n"


@pytest.mark.parametrize(
    ("command", "chosen", "message"),
    [
        (None, None, r"needs to know what to run: --command LINE, or one of aider, claude, codex, gemini, opencode"),
        ("no-such-program -p", None, r"no program 'no-such-program' on PATH"),
        ("true 'x", None, r"cannot be split into words"),
        (None, "clod", r"there is no preset .*clod.yaml; shipped are aider, claude"),
        (None, "./mine.yaml", r"there is no preset mine.yaml"),
        (None, str(CLI_AGENT), r"the preset .*cli_agent.py is not YAML"),
    ],
)
def test_what_cannot_be_started_is_said(command: str | None, chosen: str | None, message: str) -> None:
    options = AgentOptions(command=command, preset=chosen)
    with pytest.raises(UsageError, match=message):
        choose("command", op_recorded=None, single_op=True, options=options, announce=lambda _: None)


def test_a_missing_key_and_a_model_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_KEY", raising=False)
    with pytest.raises(UsageError, match="true needs a key: set AGENT_KEY"):
        CommandAgent(Preset(command="true", keys=("AGENT_KEY",)), print)
    with pytest.raises(UsageError, match="--model m: the preset of 'true' does not say how to pass it on"):
        CommandAgent(Preset(command="true"), print, model="m")
    assert Preset(command="true", model="--model {model}").words("a b") == ("true", "--model", "a b")


def test_shipped_presets_say_where_they_are_from() -> None:
    for name in names():
        found, where = find(name, None)
        assert found.source and found.words(None)[0] == name and f"{name}.yaml" in where
        own, _ = find(f"{name} --version", None)
        assert own.command == f"{name} --version" and own.keys == found.keys  # the program's name finds the preset


def test_a_command_beside_another_agent_is_refused() -> None:
    result = CliRunner().invoke(app, ["--op", "rmsnorm", "--agent", "inbox", "--command", "claude"])
    assert isinstance(result.exception, UsageError) and "--agent inbox was given" in str(result.exception)


@pytest.mark.long
def test_one_that_runs_the_test_itself_before_the_real_judge(small_rmsnorm: Op, tmp_path: Path) -> None:
    async def work() -> Run:
        judge = LocalExecutor("cpu", tmp_path / "judge.log")
        try:
            asked = agent("tests_itself", GOOD, timeout_s=300)
            return await run_op(small_rmsnorm, asked, judge, settings(), tmp_path / "workspaces", Silent())
        finally:
            await judge.close()

    run = asyncio.run(work())
    assert [attempt.status for attempt in run.attempts] == [Status.PASSED]
    found = said(tmp_path / "workspaces" / "runs" / run.id)
    assert found["code"] == 0, found
    assert "0 failed" in str(found["last"])
