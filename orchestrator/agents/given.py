"""A kernel that a person already has, as what a run begins with; and nobody, for a run that has no model to go on with.

Asks nothing of anyone: what it costs is nothing, and it is judged as any reply is.
"""

from __future__ import annotations

from orchestrator import kept, reply
from orchestrator.agents import Agent, Request
from orchestrator.agents.keys import ANTHROPIC_KEY, OPENAI_KEY, OPENAI_URL
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.records import Reply, Usage

PERSON = "person"


class Given:
    """Answers round 0 with the person's file; every other question goes to the agent that it wraps."""

    def __init__(self, agent: Agent, code: str, kernel_name: str) -> None:
        self.name = agent.name
        self._agent = agent
        self._text = reply.wrapped("The kernel that there is already.", code, kernel_name)

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        if request.round:
            return await self._agent.propose(request)
        if kept.has_reply(request.folder):  # the file may have changed since the run was killed
            return kept.reply(request.folder)
        return Reply(self._text, PERSON, Usage(latency_s=0.0, requests=0), agent=PERSON)


class NobodyToAsk(RepliesExhausted):
    """A run that is to end with what the person gave it, whatever became of that."""


class Nobody:
    """Has no answer: the person's kernel is judged and measured, and nothing is made of it."""

    name = "nobody"

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`. Raises NobodyToAsk."""
        raise NobodyToAsk(
            f"there is no model to ask for stage {request.stage!r}, round {request.round}; to go on, choose an agent: "
            f"anthropic ({ANTHROPIC_KEY}), openai ({OPENAI_KEY} or {OPENAI_URL}) or inbox"
        )
