"""A model asked outside of a run: the prompt, its reply and what it cost, in a folder of their own.

Not for a run's attempts: their folders are taken up again by the recorder. Owns no words of a prompt.
"""

from __future__ import annotations

from orchestrator import kept
from orchestrator.agents import Agent, Request
from orchestrator.agents.render import render
from orchestrator.records import Reply
from orchestrator.tree import os_errors, write_whole


async def answered(agent: Agent, request: Request) -> Reply:
    """The agent's reply, kept beside its prompt in the request's folder, which must not be there yet."""
    with os_errors(f"make {request.folder}"):
        request.folder.mkdir(parents=True)
    write_whole(request.folder / kept.PROMPT, render(request.prompt))
    reply = await agent.propose(request)
    kept.keep(reply, request.folder)
    return reply
