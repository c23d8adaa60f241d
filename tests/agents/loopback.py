"""A server on the loopback that speaks the providers' wire formats from a script, and keeps what it was asked.

Owns the transport and the shape of the streams. What a test expects stays in the test.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One scripted answer. `ends` says how the body ends: as it should, cut off, or closed as if it were whole."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()
    ends: str = "whole"  # whole | cut | closed
    delay_s: float = 0.0  # before the answer
    pause_s: float = 0.0  # before each piece


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: Any
    at_s: float  # monotonic


class Server:
    """The script, and the record of what was asked. Past the end of the script it answers 500."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.url = ""

    def next(self, asked: Asked) -> Answer:
        """Record a request and take the next answer."""
        self.asked.append(asked)
        number = len(self.asked)
        return self.answers[number - 1] if number <= len(self.answers) else error(500, "the script has ended")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer takes 0.04 s longer
    script: Server

    def do_POST(self) -> None:
        """Answer from the script."""
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.script.next(Asked(self.path, headers, json.loads(body), time.monotonic()))
        time.sleep(answer.delay_s)
        try:
            self._send(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up first, as a test of timeouts wants

    def _send(self, answer: Answer) -> None:
        chunked = answer.ends != "closed"
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header(*(("transfer-encoding", "chunked") if chunked else ("connection", "close")))
        self.end_headers()
        for piece in answer.pieces:
            time.sleep(answer.pause_s)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.flush()
        if answer.ends == "whole":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server with an empty script, for as long as the block runs."""
    script = Server()
    handler = type("Handler", (_Handler,), {"script": script})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    script.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def error(
    status: int, message: str, *, headers: dict[str, str] | None = None, delay_s: float = 0.0, **fields: object
) -> Answer:
    """An error in the form that both vendors use."""
    body = json.dumps({"type": "error", "error": {"message": message, **fields}}).encode()
    return Answer(status, {"content-type": "application/json", **(headers or {})}, (body,), delay_s=delay_s)


def sse(*pieces: bytes, **kwargs: Any) -> Answer:
    """A stream of server-sent events."""
    return Answer(200, {"content-type": "text/event-stream"}, pieces, **kwargs)


def anthropic_events(
    text: tuple[str, ...] = ("Hello", " world"),
    *,
    stop: str = "end_turn",
    start_usage: dict[str, int] | None = None,
    end_usage: dict[str, int] | None = None,
    thinking: str = "",
) -> tuple[bytes, ...]:
    """A whole Messages API stream, one event a piece."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-20990101",
        "content": [],
        "stop_reason": None,
        "usage": start_usage or {"input_tokens": 10, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    blocks: list[tuple[str, str, tuple[str, ...]]] = [("thinking", "thinking", (thinking,))] if thinking else []
    for index, (kind, name, parts) in enumerate([*blocks, ("text", "text", text)]):
        events.append({"type": "content_block_start", "index": index, "content_block": {"type": kind, name: ""}})
        for part in parts:
            delta = {"type": f"{kind}_delta", name: part}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    usage = end_usage or {"output_tokens": 7}
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    return tuple(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def openai_events(
    text: tuple[str, ...] = ("Hello", " world"),
    *,
    stop: str = "stop",
    usage: dict[str, Any] | None = None,
    reasoning: str = "",
) -> tuple[bytes, ...]:
    """A whole chat completions stream, one chunk a piece."""
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    if reasoning:
        deltas.append({"reasoning_content": reasoning})
    deltas += [{"content": part} for part in text]
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": stop}]))
    if usage is not None:
        chunks.append({**_chunk([]), "usage": usage})
    return (*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served-model", "choices": choices}
