"""Bounded JSON over a stream socket: a length, then that many bytes.

Owns framing, size limits and deadlines. The peer of `receive` may be a candidate, so nothing here unpickles,
evaluates or trusts a length. What the messages mean is the business of `candidate` and `worker`.
"""

from __future__ import annotations

import json
import socket
import struct
import time

from orchestrator.judge import linux

Message = dict[str, object]

_LENGTH = struct.Struct("!I")
LIMIT_BYTES = 1 << 20


class ChannelClosed(Exception):
    """The peer is gone."""


class ChannelTimeout(Exception):
    """Nothing, or not all of a message, arrived in time."""


class ChannelViolation(Exception):
    """What arrived is no message: too long, not JSON, or not an object."""


def send(sock: socket.socket, message: Message) -> None:
    """Send one message. Raises ChannelClosed when the peer is gone."""
    data = json.dumps(message).encode()
    try:
        sock.sendall(_LENGTH.pack(len(data)) + data)
    except OSError as error:
        raise ChannelClosed(str(error)) from error


def receive(sock: socket.socket, seconds: float | None = None, limit: int = LIMIT_BYTES) -> Message:
    """The next message, within `seconds` in all (None: however long it takes) and `limit` bytes."""
    deadline = None if seconds is None else time.monotonic() + seconds
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size, deadline))
    if length > limit:
        raise ChannelViolation(f"a message of {length} bytes; {limit} are allowed")
    data = _exactly(sock, length, deadline)
    try:
        message = json.loads(data.decode())
        if b"\\ud" in data.lower():  # half a surrogate pair is JSON and no text: nothing can write it down
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise ChannelViolation(f"not JSON: {type(error).__name__}") from error
    if not isinstance(message, dict):
        raise ChannelViolation(f"a JSON {type(message).__name__} where an object is expected")
    return message


def pending(sock: socket.socket) -> bool:
    """Whether something can be read at once: a byte that nobody asked for, or the peer's end."""
    return bool(linux.readable([sock.fileno()], 0))


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        left = None if deadline is None else deadline - time.monotonic()
        if (left is not None and left <= 0) or not linux.readable([sock.fileno()], left):
            raise ChannelTimeout
        try:
            part = sock.recv(min(count - len(parts), 1 << 16))
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not part:
            raise ChannelClosed("end of stream")
        parts += part
    return bytes(parts)
