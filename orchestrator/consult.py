"""A model asked outside of a run: the prompt, its reply and what it cost, in a folder of their own.

Not for a run's attempts, which are the recorder's. Whether a reply that is kept there is asked for again is the agent's
doing (`asking`). Owns no words of a prompt.
"""

from __future__ import annotations

from orchestrator import kept
from orchestrator.agents import Agent, Request
from orchestrator.agents.render import render
from orchestrator.errors import UsageError
from orchestrator.records import Reply
from orchestrator.tree import os_errors, write_whole


async def answered(agent: Agent, request: Request) -> Reply:
    """The agent's reply, kept beside its prompt in the request's folder.

    Raises UsageError where that holds the reply to another prompt.
    """
    prompt, file = render(request.prompt), request.folder / kept.PROMPT
    with os_errors(f"make {request.folder}"):
        request.folder.mkdir(parents=True, exist_ok=True)
    if kept.has_reply(request.folder) and file.read_bytes() != prompt.encode("utf-8", "surrogatepass"):
        raise UsageError(f"{request.folder} holds the reply to another prompt than is asked now; begin anew")
    write_whole(file, prompt)
    reply = await agent.propose(request)
    kept.keep(reply, request.folder)
    return reply
