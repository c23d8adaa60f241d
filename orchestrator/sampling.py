"""The proposals of a round: one prompt, asked as many times at once as the person wants.

Owns that they are asked side by side, are kept as they come and go on in the order of their numbers, and what becomes
of one that has no answer: the round goes on with the others. That is settled, on disk, before the first verdict, so
that a round which is taken up again has the same attempts under the same numbers. Judges nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator import kept
from orchestrator.agents import Agent, Request, Wordless
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.errors import AgentError, BudgetSpent, OrchestratorError
from orchestrator.recorder import Recorder
from orchestrator.records import Prompt, Reply, Usage

_NO_REPLY = Reply("", "no reply", Usage(latency_s=0.0, requests=0))
_OF_ONE_CALL = (AgentError, RepliesExhausted, BudgetSpent)  # anything else ends the run


@dataclass(frozen=True)
class Proposal:
    """A reply, and the attempt's folder."""

    reply: Reply
    folder: Path


async def proposals(
    agent: Agent, prompt: Prompt, stage: str, round_: int, samples: int, recorder: Recorder
) -> tuple[Proposal, ...]:
    """Ask for them. Raises what the first of them raises if none is answered."""
    requests = tuple(_requests(prompt, stage, round_, samples, recorder))
    asked = [asyncio.ensure_future(_asked(agent, request, recorder)) for request in requests]
    try:
        replies = await asyncio.gather(*asked)
    finally:
        for one in asked:
            one.cancel()
    errors = [reply for reply in replies if isinstance(reply, OrchestratorError)]
    if len(errors) == samples:
        raise errors[0]
    return tuple(_settled(request, reply, recorder) for request, reply in zip(requests, replies, strict=True))


def _requests(prompt: Prompt, stage: str, round_: int, samples: int, recorder: Recorder) -> Iterator[Request]:
    files = recorder.begins_with(round_)
    for sample in range(1, samples + 1):
        yield Request(prompt, stage, round_, recorder.asked(prompt, stage, round_, sample), files, sample)


async def _asked(agent: Agent, request: Request, recorder: Recorder) -> Reply | OrchestratorError:
    """The reply, kept, or why there is none."""
    if recorder.is_unanswered(request.folder):
        if (paid := kept.wordless(request.folder)) is not None:
            recorder.wordless(paid, request.folder)
        return paid or _NO_REPLY
    try:
        reply = await agent.propose(request)
    except Wordless as error:
        recorder.wordless(error.reply, request.folder)
        return error
    except _OF_ONE_CALL as error:
        return error
    recorder.answered(reply, request.folder)
    return reply


def _settled(request: Request, reply: Reply | OrchestratorError, recorder: Recorder) -> Proposal:
    if isinstance(reply, OrchestratorError):
        recorder.unanswered(reply, request.folder)
        reply = kept.wordless(request.folder) or _NO_REPLY
    return Proposal(reply, request.folder)
