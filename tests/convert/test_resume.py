"""A conversion that was killed goes on from its last completed step: real processes, ended by SIGKILL."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from orchestrator import config, consult, library
from orchestrator.agents import Agent, Request
from orchestrator.asking import Asking
from orchestrator.cli import carry, parts
from orchestrator.convert import split
from orchestrator.convert.extract import Target
from orchestrator.convert.prober import Prober
from orchestrator.convert.under_way import FOLDER, Conversion
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.records import Prompt, Reply, Run, Status, Turn, Usage, from_json
from tests.convert.test_split import HERE, PARTS, TEXT
from tests.test_cli import KEYS, orchestrator
from tests.test_samples import BEST, CORRECT, RUN_ID, Scripted, in_a_process, play


class Answers:
    """Notes which round it is asked for, and answers with a split that computes on the host, or ends its process."""

    name = "scripted"

    def __init__(self, log: Path, killed_at: int = 0) -> None:
        self._log = log
        self._killed_at = killed_at

    async def propose(self, request: Request) -> Reply:
        with self._log.open("a") as file:
            file.write(f"{request.round}\n")
        if request.round == self._killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        text = TEXT.replace("return scaled(x, m, w, eps)", "return x * m")
        return Reply(f"```python split.py\n{text}```\n", "a model", Usage(1.0, 1000, 200))


def split_up(op: Op, folder: Path, agent: Agent) -> list[str]:
    """What the rounds say; none of their replies is a split, so that no probe is asked."""
    said: list[str] = []
    nobody = cast(Prober, None)
    ended = asyncio.run(split.proposed(op, "", Asking(agent, ()), nobody, 3, folder / "splits", said.append))
    assert isinstance(ended, str) and "no split into parts came of 3 rounds" in ended
    return said


def test_a_killed_split_asks_only_for_what_had_not_come(rmsnorm: Op, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    assert in_a_process(lambda: split_up(rmsnorm, tmp_path, Answers(log, killed_at=2))) == signal.SIGKILL
    problem = tmp_path / "splits" / "01-split" / "problem.md"
    assert "only parts may compute" in problem.read_text()
    problem.write_text("as it was found")
    said = split_up(rmsnorm, tmp_path, Answers(log))
    assert log.read_text().split() == ["1", "2", "2", "3"], "the first reply was there; the second had not come"
    assert "round 1: kept" in said[0] and "round 1: as it was found" in said[1] and "round 2: asking" in said[2]


def test_a_reply_to_another_prompt_is_not_taken_for_this_one(tmp_path: Path) -> None:
    def asked(text: str) -> Reply:
        request = Request(Prompt("", (Turn("user", text),)), "split", 1, tmp_path / "one")
        return asyncio.run(consult.answered(Asking(Answers(tmp_path / "log"), ()), request))

    assert asked("this") == asked("this") and (tmp_path / "log").read_text() == "1\n"
    with pytest.raises(UsageError, match="the reply to another prompt"):
        asked("that")


def test_a_run_that_is_over_is_read_and_not_run_again(rmsnorm: Op, tmp_path: Path) -> None:
    """No judge is started: a device that does not exist is not missed."""
    over = asyncio.run(play(rmsnorm, tmp_path, Scripted(correct_1=(BEST,)), 1, CORRECT, run_id=RUN_ID))
    said: list[str] = []
    settings = {"agent": {"name": "recorded"}, "judge": {"device": "gpu"}}
    read = library.run_op(
        rmsnorm, workspaces=tmp_path / "workspaces", settings=settings, say=said.append, run_id=RUN_ID
    )
    assert (read, said) == (over, [f"rmsnorm: {RUN_ID} is over, MERGE"])


def test_a_step_keeps_the_run_that_it_was_given(tmp_path: Path) -> None:
    code = Target(HERE / "given" / "large.py", "weighed")
    assert in_a_process(lambda: _killed_after(Conversion.begin(code, ["weighed"], tmp_path))) == signal.SIGKILL
    first = Conversion.newest(code, "weighed", tmp_path)
    again = Conversion.newest(code, "weighed", tmp_path)
    assert first.has("weighed_softmax_of_product") and not first.has("weighed_rms_scaled")
    assert first.run_of("weighed_softmax_of_product", "weighed_softmax_of_product") == again.run_of(
        "weighed_softmax_of_product", "weighed_softmax_of_product"
    )
    assert again.run_of("weighed composed", "weighed").startswith("weighed-")
    with first.held(), pytest.raises(UsageError, match="by another process"), again.held():
        pass


def _killed_after(conversion: Conversion) -> None:
    conversion.run_of("weighed_softmax_of_product", "weighed_softmax_of_product")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("replace", "part"), [(False, "squares"), (True, "backward")])
def test_a_part_takes_no_folder_that_is_another_ops(rmsnorm: Op, tmp_path: Path, replace: bool, part: str) -> None:
    """Neither a person's own, unless they say so, nor that of the gradients."""
    (tmp_path / f"rmsnorm_{part}").mkdir()
    code = Target(HERE / "given" / "large.py", "weighed")
    conversion = Conversion.begin(code, ["rmsnorm", "rmsnorm_backward"], tmp_path)
    means = parts.Means(conversion, config.load(), tmp_path, 1.0, replace, carry.terminal(to_stderr=True))
    whole = Op(tmp_path / "rmsnorm", rmsnorm.spec, rmsnorm.reference)
    with pytest.raises(UsageError, match=f"rmsnorm_{part} is there already, and a part is to be called so"):
        parts._part(whole, tmp_path / "split.py", part, split.Split("", {}), means)


def test_code_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("def f(x):\n    return x\n")
    with pytest.raises(UsageError, match="no conversion to f came as far as its op"):
        Conversion.newest(Target(file, "f"), "f", tmp_path)
    Conversion.begin(Target(file, "f"), ["f"], tmp_path)
    file.write_text("def f(x):\n    return x\n\ndef g(x):\n    return x\n")
    assert Conversion.newest(Target(file, "f"), "f", tmp_path).ops == ("f",), "what f does not use may change"
    file.write_text("def f(x):\n    return x + 1\n")
    with pytest.raises(UsageError, match=r"code.py has changed since f-.* --replace"):
        Conversion.newest(Target(file, "f"), "f", tmp_path)


def killed_at(line: str, folder: Path, *arguments: str) -> None:
    """The command, ended by SIGKILL as soon as it says that."""
    environment = {name: value for name, value in os.environ.items() if name not in KEYS} | {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "orchestrator", *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = []
        for told in process.stdout:
            said.append(told)
            if line in told:
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL, "".join(said)


@pytest.mark.long
def test_a_killed_conversion_in_parts_goes_on_to_the_same_end(tmp_path: Path) -> None:
    ops, workspaces = tmp_path / "ops", tmp_path / "workspaces"
    for part in PARTS:
        shutil.copytree(HERE / "replies" / part, ops / part / "recorded")
    code = ("convert", f"{HERE}/given/large.py:weighed", "--replace")
    options = ("--agent", "recorded", "--rounds", "1", "--device", "cpu")
    killed_at("a split into parts is asked for", tmp_path, *code, *options)
    spent(ops / "weighed" / "recorded", "correct-1")
    killed_at("the part softmax_of_product", tmp_path, *code, "--resume", *options)
    spent(ops / "weighed" / "recorded", "split-1")
    spent(ops / "weighed_rms_scaled" / "recorded", "correct-1")
    before = recorded(workspaces)
    killed_at("judged as the whole", tmp_path, *code, "--resume", *options)
    last = orchestrator(tmp_path, *code, "--resume", *options)
    assert last.returncode == 0, last.stdout + last.stderr
    assert "split, round 1: kept" in last.stdout and last.stdout.count(" is over, ") == 3
    runs = recorded(workspaces)
    assert len(runs) == 4, "the whole, two parts, and the whole of its parts: none of them twice"
    assert {name: runs[name] for name in before} == before, "what was over is as it was"
    (whole,) = (run for run in map(read, runs.values()) if run.op == "weighed" and run.best is not None)
    assert whole.attempts[0].round == 0 and whole.attempts[0].status is Status.PASSED
    assert len(list((workspaces / FOLDER).iterdir())) == 1 and len(list((workspaces / "splits").glob("*/*"))) == 1


def spent(folder: Path, reply: str) -> None:
    """A reply that is there once only: who asks again finds none."""
    (folder / f"{reply}.md").write_text("I have said it already.")


def recorded(workspaces: Path) -> dict[str, str]:
    return {file.parent.name: file.read_text() for file in (workspaces / "runs").glob("*/run.json")}


def read(text: str) -> Run:
    return from_json(Run, text)
