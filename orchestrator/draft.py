"""An op drafted by a model from a sentence: asked for, checked, given back, and left for a person to approve.

Owns the rounds of that conversation and what of a reply becomes a file. A draft is never approved here, whatever it
says of itself, and what a model wrote is only run confined (`OpCheckJob.confined`). Its record is a folder beside the
runs': prompt, reply, cost and what was wrong, for each round.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import catalogue, consult, opcheck, ops, prompts, reply
from orchestrator.agents import Agent, Request
from orchestrator.config import Settings
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.tree import lay_out, write_whole

FOLDER = "drafts"  # in the workspaces
_APPROVED = re.compile(r"^approved\s*:.*\n?", re.MULTILINE)
_NOT_APPROVED = "approved: false  # drafted by a model; set true once you have read this and reference.py"
_PROBLEM = "problem.md"


@dataclass(frozen=True)
class Draft:
    """What came of it. Without files no reply could be read as an op; `problem` says what is wrong with the last."""

    files: Mapping[str, bytes]
    problem: str


async def draft(
    name: str,
    sentence: str,
    agent: Agent,
    executor: Executor,
    settings: Settings,
    record: Path,
    tell: Callable[[str], None],
) -> Draft:
    """Ask for the op's files, up to `loop.rounds` times; what is wrong with them goes back each time."""
    prompt = prompts.draft(name, sentence, catalogue.template(name))
    best = Draft({}, "nothing was asked")
    for round_ in range(1, settings.loop.rounds + 1):
        folder = record / f"{round_:02}-draft"
        tell(f"round {round_}: asking; the record is in {folder}")
        answer = await consult.answered(agent, Request(prompt, "draft", round_, folder))
        drafted = await _drafted(name, answer.text, executor, settings)
        best = drafted if drafted.files else replace(best, problem=drafted.problem)
        if not drafted.problem:
            break
        tell(f"round {round_}: {drafted.problem.splitlines()[0]}")
        write_whole(folder / _PROBLEM, drafted.problem)
        prompt = prompts.redraft(prompt, answer, drafted.problem)
    return best


async def _drafted(name: str, text: str, executor: Executor, settings: Settings) -> Draft:
    """The reply as an op's files, and what is wrong with them; no files where they are not even an op."""
    found = reply.files(text, "reference.py", f"{name}_ref")
    if missing := [file for file in catalogue.FILES if file not in found]:
        return Draft({}, f"no fenced block is named {' or '.join(missing)}")
    files = {file: found[file] for file in catalogue.FILES}
    files["op.yaml"] = _unapproved(files["op.yaml"])
    with tempfile.TemporaryDirectory(prefix="draft-") as place:
        lay_out(files, Path(place) / name)
        try:
            op = ops.load(name, Path(place))
        except UsageError as error:
            return Draft({}, str(error).replace(f"{place}/{name}/", ""))
        if op.spec.approved:
            return Draft({}, "op.yaml: approved is a person's to say; leave it out")
        result = await opcheck.check(op, executor, quick=settings.judge.quick)
    return Draft(files, "" if result.passed else "\n".join(opcheck.lines(result)))


def _unapproved(text: bytes) -> bytes:
    """op.yaml with our word on approval in place of the model's; another spelling of the key is found by its value."""
    rest = _APPROVED.sub("", text.decode("utf-8", "surrogatepass"))
    return f"{_NOT_APPROVED}\n{rest}".encode("utf-8", "surrogatepass")
