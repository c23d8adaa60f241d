"""The inbox with real files: what is written, and which reply is taken when."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from orchestrator.agents import Request
from orchestrator.agents.inbox import InboxAgent
from orchestrator.agents.render import render
from orchestrator.errors import AgentError


def _agent(said: list[str] | None = None, *, timeout_s: float | None = 5.0, model: str = "unknown") -> InboxAgent:
    announce = said.append if said is not None else lambda _: None
    return InboxAgent(announce, model=model, timeout_s=timeout_s, poll_s=0.02, settle_s=0.15)


async def _file(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def test_prompt_out_reply_in(request_: Request) -> None:
    said: list[str] = []
    proposal = asyncio.create_task(_agent(said, model="claude-in-a-window").propose(request_))
    prompt, answer = request_.folder / "inbox" / "prompt.md", request_.folder / "inbox" / "reply.md"
    await _file(prompt)
    assert prompt.read_text() == render(request_.prompt)
    assert str(prompt) in said[0]
    assert str(answer) in said[0]
    part = answer.with_name("reply.part")
    part.write_text("```python\nx = 'ü'\n```\n", encoding="utf-8")
    part.rename(answer)
    reply = await proposal
    assert reply.text == "```python\nx = 'ü'\n```\n"
    assert reply.model == "claude-in-a-window"
    assert reply.usage.input_tokens is None
    assert reply.usage.latency_s > 0


async def test_a_half_written_reply_is_not_taken(request_: Request) -> None:
    proposal = asyncio.create_task(_agent().propose(request_))
    answer = request_.folder / "inbox" / "reply.md"
    await _file(answer.with_name("prompt.md"))
    answer.touch()
    await asyncio.sleep(0.3)  # empty for longer than a reply has to stand still
    assert not proposal.done()
    with answer.open("w") as file:
        for line in ("one\n", "two\n", "three\n"):
            file.write(line)
            file.flush()
            await asyncio.sleep(0.1)
    assert (await proposal).text == "one\ntwo\nthree\n"


async def test_a_reply_of_blanks_is_none(request_: Request) -> None:
    answer = request_.folder / "inbox" / "reply.md"
    proposal = asyncio.create_task(_agent(timeout_s=0.5).propose(request_))
    await _file(answer.with_name("prompt.md"))
    answer.write_text(" \n")
    with pytest.raises(AgentError, match="no reply"):
        await proposal


async def test_no_reply_in_time(request_: Request) -> None:
    with pytest.raises(AgentError, match=r"no reply in .*reply\.md after 0\.2 s"):
        await _agent(timeout_s=0.2).propose(request_)


async def test_a_resumed_run_takes_the_reply_to_the_same_prompt(request_: Request) -> None:
    with pytest.raises(AgentError):
        await _agent(timeout_s=0.05).propose(request_)
    (request_.folder / "inbox" / "reply.md").write_text("late")
    assert (await _agent().propose(request_)).text == "late"


async def test_a_reply_from_before_is_not_taken(request_: Request) -> None:
    (request_.folder / "inbox").mkdir()
    (request_.folder / "inbox" / "reply.md").write_text("to what?")
    with pytest.raises(AgentError, match="was there before its prompt"):
        await _agent().propose(request_)


async def test_a_reply_in_another_encoding(request_: Request) -> None:
    proposal = asyncio.create_task(_agent().propose(request_))
    answer = request_.folder / "inbox" / "reply.md"
    await _file(answer.with_name("prompt.md"))
    answer.write_bytes("für".encode("latin-1"))
    with pytest.raises(AgentError, match="not UTF-8"):
        await proposal


async def test_a_folder_that_cannot_be_written(request_: Request) -> None:
    (request_.folder / "inbox").write_text("a file where the folder should be")
    with pytest.raises(AgentError, match="could not be written"):
        await _agent().propose(request_)
