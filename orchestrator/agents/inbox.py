"""The agent that asks whoever reads the file: a person, or a model that the person talks to elsewhere.

Owns the two files and the waiting. Writes nothing outside `<request.folder>/inbox`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.agents import Request
from orchestrator.agents.render import render
from orchestrator.errors import AgentError
from orchestrator.records import Reply, Usage


class InboxAgent:
    """Writes inbox/prompt.md, waits for inbox/reply.md, and takes it as the reply.

    A reply counts once it holds a word and its size and time of change have stood still for `settle_s`. A writer that
    pauses longer than that can still be caught half way: writing to another name in the same folder and renaming it to
    reply.md when done is safest. A reply that lies there already is taken if the same prompt lies beside it (a run that
    was resumed) and is an AgentError otherwise.
    """

    name = "inbox"

    def __init__(
        self,
        announce: Callable[[str], None],
        *,
        model: str = "unknown",
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        settle_s: float = 1.0,
    ) -> None:
        self.model = model
        self._announce = announce
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._settle_s = settle_s

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`."""
        started = time.monotonic()
        reply = _ask(request)
        self._announce(f"prompt: {reply.with_name('prompt.md')}\nwaiting for the reply: {reply}")
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await self._settled(reply)
        except TimeoutError:
            raise AgentError(f"no reply in {reply} after {self._timeout_s:g} s") from None
        return Reply(text, self.model, Usage(latency_s=time.monotonic() - started))

    async def _settled(self, reply: Path) -> str:
        seen, since = _stamp(reply), time.monotonic()
        while True:
            await asyncio.sleep(self._poll_s)
            now = _stamp(reply)
            if now != seen:
                seen, since = now, time.monotonic()
            elif seen is not None and time.monotonic() - since >= self._settle_s and (text := _read(reply)).strip():
                return text


def _ask(request: Request) -> Path:
    """Write the prompt and say where the reply is to be. Raises AgentError."""
    folder = request.folder / "inbox"
    prompt, reply, text = folder / "prompt.md", folder / "reply.md", render(request.prompt).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if prompt.exists() and prompt.read_bytes() == text:
            return reply
        if reply.exists():
            raise AgentError(f"{reply} was there before its prompt; move it away")
        written = folder / "prompt.md.part"
        written.write_bytes(text)
        written.replace(prompt)  # whoever watches the folder sees the whole prompt or none
    except OSError as err:
        raise AgentError(f"the prompt could not be written to {folder}: {err.strerror}") from err
    return reply


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of change; None while there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _read(path: Path) -> str:
    """The reply, without the byte order mark that some editors write; nothing when it has just been taken away."""
    try:
        return path.read_bytes().decode("utf-8-sig")  # not read_text, which changes line ends
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as err:
        raise AgentError(f"{path} is not UTF-8 text: {err.reason} at byte {err.start}") from err
    except OSError as err:
        raise AgentError(f"{path} cannot be read: {err.strerror}") from err
