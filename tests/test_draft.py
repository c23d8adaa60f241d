"""An op drafted by a model: asked through an agent, checked confined, given back, never approved by itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import catalogue, config, draft, opcheck, ops
from orchestrator.agents import Request
from orchestrator.agents.inbox import InboxAgent
from orchestrator.draft import Draft
from orchestrator.executors.local import LocalExecutor
from orchestrator.records import Reply, Usage
from tests.test_cli import KEYS

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEMPLATE = {name: data.decode() for name, data in catalogue.template("mine").items()}
FORMULA = "y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)"
LINE = next(line.strip() for line in TEMPLATE["reference.py"].splitlines() if "raise NotImplementedError" in line)
REFERENCE = TEMPLATE["reference.py"].replace(LINE, FORMULA)
OP = TEMPLATE["op.yaml"].replace("approved: false", "approved: true")  # not for a model to say


def answer(op: str, reference: str) -> str:
    return f"Two files.\n\n```yaml op.yaml\n{op}```\n\n```python reference.py\n{reference}```\n"


class Scripted:
    """Answers with the texts, in order, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *texts: str) -> None:
        self.asked: list[Request] = []
        self._texts = list(texts)

    async def propose(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(self._texts.pop(0), "none", Usage(0.0))


async def drafted(judge: LocalExecutor, record: Path, *texts: str) -> tuple[Draft, Scripted, list[str]]:
    agent, said = Scripted(*texts), list[str]()
    settings = config.load(flags={"loop": {"rounds": len(texts)}})
    return await draft.draft("mine", "rows by their size", agent, judge, settings, record, said.append), agent, said


async def test_what_is_wrong_goes_back_until_the_check_passes(judge: LocalExecutor, tmp_path: Path) -> None:
    weak = OP.replace(", parameters: {eps: 0.1}", "").replace("    parameters: {eps: [1.0e-5, 0.1]}\n", "")
    replies = ("no block", answer(OP + "speed: 1\n", REFERENCE), answer(weak, REFERENCE), answer(OP, REFERENCE))
    result, agent, said = await drafted(judge, tmp_path / "record", *replies)
    assert result.problem == "" and set(result.files) == {"op.yaml", "reference.py"}
    asked = [request.prompt.turns[-1].text for request in agent.asked]
    assert "> rows by their size" in asked[0] and "approved: false" in asked[0] and "def cross_entropy_ref" in asked[0]
    assert "no fenced block is named op.yaml or reference.py" in asked[1]
    assert "op.yaml: speed" in asked[2] and str(tmp_path) not in asked[2]
    assert "eps as its default" in asked[3] and "LET THROUGH" in asked[3]
    assert [len(request.prompt.turns) for request in agent.asked] == [1, 3, 5, 7]
    kept = {path.name for path in (tmp_path / "record" / "03-draft").iterdir()}
    assert kept == {"prompt.md", "reply.md", "usage.json", "problem.md"}
    catalogue.add(catalogue.place("mine", tmp_path / "ops"), result.files)
    assert not ops.load("mine", tmp_path / "ops").spec.approved


async def test_the_last_draft_that_is_an_op_is_kept_with_what_is_wrong(judge: LocalExecutor, tmp_path: Path) -> None:
    unwritten = answer(OP, TEMPLATE["reference.py"])
    result, _, _ = await drafted(judge, tmp_path / "record", unwritten, "no block")
    assert b"NotImplementedError" in result.files["reference.py"] and "no fenced block" in result.problem
    result, _, _ = await drafted(judge, tmp_path / "other", answer(OP, "def other(): ...\n"))
    assert result == Draft({}, result.problem) and "defines no function mine_ref" in result.problem


async def test_approval_in_another_spelling_is_refused(judge: LocalExecutor, tmp_path: Path) -> None:
    spelled = OP.replace("approved: true", '"approved": true')
    result, _, _ = await drafted(judge, tmp_path / "record", answer(spelled, REFERENCE))
    assert not result.files and "a person's to say" in result.problem


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("open({outside!r}, 'w').write('x')", "PermissionError"),
        ("open({secret!r}).read()", "PermissionError"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "was ended by signal 9"),
    ],
)
async def test_what_nobody_has_read_runs_confined(judge: LocalExecutor, tmp_path: Path, act: str, said: str) -> None:
    outside, secret = tmp_path / "outside", tmp_path / "secret"
    secret.write_text("x")
    hostile = REFERENCE + "\n\n" + act.format(outside=str(outside), secret=str(secret)) + "\n"
    result, _, _ = await drafted(judge, tmp_path / "record", answer(OP, hostile))
    assert said in result.problem and not outside.exists()
    op = tmp_path / "ops" / "mine"
    catalogue.add(op, {"op.yaml": OP.encode(), "reference.py": REFERENCE.encode()})
    assert (await opcheck.check(ops.load("mine", tmp_path / "ops"), judge)).passed, "the judge goes on"


async def test_the_inbox_can_draft_too(judge: LocalExecutor, tmp_path: Path) -> None:
    """A person, or a model that the person talks to elsewhere."""
    agent = InboxAgent(lambda _: None, timeout_s=30, poll_s=0.02, settle_s=0.1)
    settings = config.load(flags={"loop": {"rounds": 1}})
    asking = asyncio.create_task(draft.draft("mine", "rows", agent, judge, settings, tmp_path, lambda _: None))
    inbox = tmp_path / "01-draft" / "inbox"
    while not (inbox / "prompt.md").is_file():
        await asyncio.sleep(0.02)
    (inbox / "part").write_text(answer(OP, REFERENCE))
    (inbox / "part").rename(inbox / "reply.md")
    assert (await asking).problem == ""


@pytest.mark.long
async def test_the_command_from_a_sentence_to_a_draft(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    environment["PYTHONPATH"] = str(Path(__file__).parent.parent)
    command = [sys.executable, "-m", "orchestrator", "ops", "new", "mine", "--from", "rows", "--agent", "inbox"]
    with subprocess.Popen(
        [*command, "--device", "cpu"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        inbox = None
        while inbox is None and process.poll() is None:
            inbox = next(tmp_path.glob("workspaces/drafts/*/01-draft/inbox"), None)
            await asyncio.sleep(0.1)
        assert inbox is not None
        (inbox / "part").write_text(answer(OP, REFERENCE))
        (inbox / "part").rename(inbox / "reply.md")
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and "every decoy is rejected" in out and "set approved: true" in out
    assert not ops.load("mine", tmp_path / "ops").spec.approved
