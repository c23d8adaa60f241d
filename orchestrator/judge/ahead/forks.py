"""Calls in forks of this process, several at a time: a compiler may end its process, or never come back."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

_LAST_OUTPUT = 3000  # bytes


@dataclass(frozen=True)
class Outcome:
    """`text` is what the call returned; without it the fork died by `signal`, exited, or was ended at the limit."""

    text: str | None
    output: str  # the end of what it printed
    seconds: float
    signal: int | None = None
    timed_out: bool = False


@dataclass
class _Fork:
    index: int
    pid: int
    printed: IO[bytes]
    started: float = field(default_factory=time.monotonic)
    said: bytearray = field(default_factory=bytearray)

    def outcome(self, timed_out: bool = False) -> Outcome:
        _, status = os.waitpid(self.pid, 0)
        self.printed.seek(0)
        output = self.printed.read()[-_LAST_OUTPUT:].decode(errors="replace")
        self.printed.close()
        by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) and not timed_out else None
        text = self.said.decode(errors="replace") if status == 0 else None
        return Outcome(text, output, time.monotonic() - self.started, by_signal, timed_out)


def run(calls: Sequence[Callable[[], str]], workers: int, limit_s: float) -> list[Outcome]:
    """What each call came to, in order. Those not done after `limit_s` seconds are ended, those not begun are not."""
    outcomes = [Outcome(None, "", 0.0, timed_out=True) for _ in calls]
    deadline, begun, selector = time.monotonic() + limit_s, 0, selectors.DefaultSelector()
    with selector:
        while begun < len(calls) or selector.get_map():
            while begun < len(calls) and len(selector.get_map()) < workers:
                reading, fork = _start(begun, calls[begun])
                selector.register(reading, selectors.EVENT_READ, fork)
                begun += 1
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                _end(selector, outcomes)
                break
            for key, _ in ready:
                _read(selector, key, outcomes)
    return outcomes


def _start(index: int, call: Callable[[], str]) -> tuple[int, _Fork]:
    reading, writing = os.pipe()
    printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the fork's outcome
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _become(call, writing, printed)
    os.close(writing)
    return reading, _Fork(index, pid, printed)


def _become(call: Callable[[], str], writing: int, printed: IO[bytes]) -> None:
    code = 1
    try:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)  # what was there may lead elsewhere
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(call().encode())
        code = 0
    except BaseException:  # noqa: BLE001 - the last frame of a fork: nobody above may catch it
        traceback.print_exc()
    finally:
        os._exit(code)


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, outcomes: list[Outcome]) -> None:
    fork: _Fork = key.data
    chunk = os.read(key.fd, 1 << 16)
    if chunk:
        fork.said += chunk
        return
    selector.unregister(key.fd)
    os.close(key.fd)
    outcomes[fork.index] = fork.outcome()


def _end(selector: selectors.BaseSelector, outcomes: list[Outcome]) -> None:
    for key in list(selector.get_map().values()):
        fork: _Fork = key.data
        os.kill(fork.pid, signal.SIGKILL)
        os.close(key.fd)
        outcomes[fork.index] = fork.outcome(timed_out=True)
