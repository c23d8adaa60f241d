"""Our end of a command-line agent's process: the order to the launcher, the prompt in, what it prints, and its end.

Owns the wall limit. What the end means is the agent's business (`command`), how it is brought about the launcher's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.agents.launcher import Order
from orchestrator.errors import AgentError
from orchestrator.executors.local import judge_environment
from orchestrator.judge import channel
from orchestrator.records import SandboxPiece
from orchestrator.text import printable

_START_S, _END_S = 60, 60
_OUTPUT_BYTES = 200_000  # of what it printed, the end: there it says what it did

Note = Callable[[tuple[SandboxPiece, ...]], None]


@dataclass(frozen=True)
class Ended:
    """How an agent ended, with all that it had started, and the end of what it printed."""

    status: int  # as os.wait has it
    stopped: bool  # by us: its time was up
    out: str
    err: str


async def launched(order: Order, prompt: bytes | None, timeout_s: float, note: Note) -> Ended:
    """Starts it, with the prompt on its standard input if it is given one; returns when nothing of it runs any more.

    `note` is told which pieces of the confinement hold, before the agent does anything. Raises AgentError where it
    could not be started. Whatever ends this, a cancelled task too, ends the agent.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator.agents.launcher", str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL if prompt is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=judge_environment(),
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        talking = asyncio.gather(_fed(process.stdin, prompt), _tail(process.stdout), _tail(process.stderr))
        try:
            end = await _watched(ours, order, timeout_s, note)
        finally:
            await _over(process, ours)
        _, out, err = await talking
    return Ended(int(end["status"] or 0), bool(end["stopped"]), out, err)


async def _watched(line: socket.socket, order: Order, timeout_s: float, note: Note) -> dict[str, Any]:
    """From the order to the agent's end, or to the end of its time."""
    try:
        channel.send(line, order.to_json())
        begun: dict[str, Any] = await asyncio.to_thread(channel.receive, line, _START_S)
        note(tuple(SandboxPiece(**values) for values in begun["pieces"]))
        if begun["failed"]:
            raise AgentError(f"{order.argv[0]} could not be started: {printable(str(begun['failed']), 300)}")
        with contextlib.suppress(channel.ChannelTimeout):
            return await asyncio.to_thread(channel.receive, line, timeout_s)
        line.shutdown(socket.SHUT_WR)
        return await asyncio.to_thread(channel.receive, line, _END_S)
    except (channel.ChannelClosed, channel.ChannelTimeout, channel.ChannelViolation) as error:
        raise AgentError(f"the process that starts {order.argv[0]} ended, or hangs: {error}; try again") from error


async def _over(process: asyncio.subprocess.Process, line: socket.socket) -> None:
    """The launcher ends what is left of the agent once we hang up, then itself."""
    line.shutdown(socket.SHUT_WR)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _END_S)
    if process.returncode is None:
        process.kill()


async def _fed(stdin: asyncio.StreamWriter | None, prompt: bytes | None) -> None:
    """The prompt, as far as it cares to read."""
    if stdin is None or prompt is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(prompt)
        await stdin.drain()
    stdin.close()


async def _tail(stream: asyncio.StreamReader | None) -> str:
    """The end of what it prints."""
    assert stream is not None
    text = b""
    while chunk := await stream.read(1 << 16):
        text = (text + chunk)[-_OUTPUT_BYTES:]
    return text.decode(errors="replace")
