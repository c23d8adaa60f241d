"""The judge's side of its candidates: ask for one, read what it prints, learn how it ended.

Owns the warden's process and the protocol with it; `warden` owns what happens on the other side. A warden is a fork of
the judge, so everything the judge imported before `ForkServer.start` is loaded in every candidate, and everything the
judge knew by then is in a candidate's memory: nonces, seeds and expected values must be made afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any, Literal

from orchestrator.errors import JudgeError
from orchestrator.judge import linux
from orchestrator.judge.sandbox import Confinement, pieces_from_json
from orchestrator.judge.warden import MAX_FDS, MAX_MESSAGE_BYTES, Target, become_warden
from orchestrator.records import SandboxPiece

Reason = Literal["exited", "signal", "memory", "processes", "disk", "killed"]

_CONFINED_WITHIN_S = 30.0
_KILLED_WITHIN_S = 30.0
_OUTPUT_HALF_BYTES = 32 << 10


@dataclass(frozen=True)
class Exit:
    """How a candidate ended. By then no process of its tree is left."""

    reason: Reason
    code: int | None  # of the main process, when it exited
    signal: int | None  # that ended the main process
    peak_resident_bytes: int  # over all its processes, without what it inherited
    peak_processes: int
    output: str  # head and tail of what it printed; never evidence
    output_bytes: int  # how much it printed in all
    detail: str = ""  # memory, processes, disk: how much, and the limit; killed: the caller's words


class _Output:
    """Reads a pipe to its end in a thread; keeps head and tail, counts the rest."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self._thread = threading.Thread(target=self._drain, name="candidate-output", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with os.fdopen(self._descriptor, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                self.total_bytes += len(chunk)
                room = _OUTPUT_HALF_BYTES - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[room:]
                del self._tail[:-_OUTPUT_HALF_BYTES]

    def text(self, within_s: float) -> str:
        """What was printed. Call when every writer is gone."""
        self._thread.join(within_s)
        missing = self.total_bytes - len(self._head) - len(self._tail)
        gap = f"\n... {missing} bytes left out ...\n" if missing > 0 else ""
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")


class Child:
    """One candidate. `sock` is the judge's end of the channel."""

    def __init__(self, server: ForkServer, number: int, sock: socket.socket, output: _Output) -> None:
        self.sock = sock
        self.pid = 0
        self.pieces: tuple[SandboxPiece, ...] = ()
        self._server = server
        self._number = number
        self._output = output
        self._exit: Exit | None = None
        self._pidfd: int | None = None  # while it may live: its number may be another's by the time it is signalled
        self._pidfd_in_use = threading.Lock()

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How it ended, or None when it lives on after `timeout` seconds. JudgeError when the warden has died."""
        if self._exit is None and (message := self._server.receive(self._number, timeout)) is not None:
            text = self._output.text(within_s=2.0)
            fields = {name: value for name, value in message.items() if name != "number"}
            self._exit = Exit(**fields, output=text, output_bytes=self._output.total_bytes)
            with self._pidfd_in_use:
                self._let_go()
        return self._exit

    def began(self, pid: int, pidfd: int) -> None:
        """It is that process."""
        self.pid, self._pidfd = pid, pidfd

    def interrupt(self) -> None:
        """Kill the process without asking the warden, from another thread than the one that speaks with it."""
        with self._pidfd_in_use, suppress(ProcessLookupError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _let_go(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def kill(self, reason: str) -> Exit:
        """Ends it and everything it started. When it ended by itself meanwhile, that is what the answer says."""
        if self._exit is None:
            self._server.send({"order": "kill", "number": self._number, "why": reason})
        ended = self.wait(_KILLED_WITHIN_S)
        if ended is None:
            raise JudgeError(f"the warden did not end candidate {self.pid} within {_KILLED_WITHIN_S:.0f} s; start anew")
        return ended

    def close(self) -> None:
        """Ends it if it lives, and closes the channel."""
        with suppress(JudgeError):
            self.kill("closed")
        self.sock.close()


class ForkServer:
    """The warden as the judge sees it. One candidate at a time."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self._control = control
        self._spawned = 0
        self._current: Child | None = None

    @classmethod
    def start(cls, target: Target, prepare: Callable[[], None] | None = None) -> ForkServer:
        """Forks the warden. Call before CUDA is initialised and before any thread of torch's has run.

        `target(sock, config)` is what each candidate runs once confined; `config["fds"]` holds the descriptors passed.
        `prepare` runs in the warden first, for what its candidates are to find loaded and the judge has no use for.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()  # or the fork would print it once more
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            become_warden(theirs, target, prepare)
        theirs.close()
        return cls(pid, ours)

    @property
    def alive(self) -> bool:
        """Whether the warden still runs. When not, a judge that has initialised CUDA must restart itself."""
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def spawn(self, config: dict[str, object], confinement: Confinement, fds: Sequence[int] = ()) -> Child:
        """A confined candidate running `target`. Returns once it is confined; `pieces` says what was held."""
        if self._current is not None and self._current.wait(0) is None:
            raise JudgeError("a candidate is still alive; kill it before the next is spawned")
        self._spawned += 1
        order = {"order": "spawn", "number": self._spawned, "config": config, "confinement": confinement.to_json()}
        ours, theirs = socket.socketpair()
        output_reading, output_writing = os.pipe()
        pieces_reading, pieces_writing = os.pipe()
        output, pieces = _Output(output_reading), os.fdopen(pieces_reading, "rb", buffering=0)
        with pieces:
            try:
                self.send(order, [theirs.fileno(), output_writing, pieces_writing, *fds])
            finally:
                theirs.close()
                os.close(output_writing)  # ends the reading thread when nothing was spawned
                os.close(pieces_writing)
            child = self._current = Child(self, self._spawned, ours, output)
            child.began(*self._pid_of(self._spawned))
            child.pieces = self._pieces(child, pieces)
        return child

    def _pid_of(self, number: int) -> tuple[int, int]:
        started = self.receive(number, _CONFINED_WITHIN_S)
        if started is None or "pid" not in started:
            raise JudgeError("the warden did not fork a candidate; the judge must be started anew")
        return int(started["pid"]), int(started["pidfd"])

    def _pieces(self, child: Child, pipe: FileIO) -> tuple[SandboxPiece, ...]:
        text = _read_to_end(pipe, _CONFINED_WITHIN_S)
        try:
            return pieces_from_json(text)
        except ValueError:
            output = child.kill("not confined").output
            raise JudgeError(f"the candidate's process could not be confined: {output.strip()[-2000:]}") from None

    def send(self, order: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """One order to the warden."""
        message = json.dumps(order).encode()
        if len(message) > MAX_MESSAGE_BYTES or len(fds) > MAX_FDS:
            raise JudgeError(f"an order of {len(message)} bytes, {len(fds)} descriptors is too large for the warden")
        try:
            socket.send_fds(self._control, [message], list(fds))
        except OSError as error:
            raise self._dead() from error

    def receive(self, number: int, timeout: float | None) -> dict[str, Any] | None:
        """The next message about one candidate; None after `timeout` seconds. Others' late messages are dropped."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not linux.readable([self._control.fileno()], left):
                return None
            try:
                message, fds, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, 1)
            except ConnectionError:
                message, fds = b"", []
            if not message:
                raise self._dead()
            answer: dict[str, Any] = json.loads(message)
            if answer["number"] == number:
                return answer | ({"pidfd": fds[0]} if fds else {})
            for descriptor in fds:
                os.close(descriptor)

    def _dead(self) -> JudgeError:
        """The warden died. Its candidate's own process dies with it; the rest of its group is ended here."""
        if self._current is not None and self._current.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._current.pid, signal.SIGKILL)
        return JudgeError("the fork server died; the judge must be started anew")

    def close(self) -> None:
        """Ends the warden and, through it, its candidate."""
        self._control.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _read_to_end(pipe: FileIO, within_s: float) -> bytes:
    """What a pipe carries until all writers have closed it; what there is by then when that takes too long."""
    deadline, text = time.monotonic() + within_s, b""
    while linux.readable([pipe.fileno()], max(0.0, deadline - time.monotonic())):
        if not (chunk := pipe.read(1 << 16)):
            break
        text += chunk
    return text
