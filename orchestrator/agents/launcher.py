"""The process between us and a command-line agent: it confines the agent, watches for its end, and ends all it started.

    python -m orchestrator.agents.launcher DESCRIPTOR

Owns what such an agent may touch and the words for what a missing piece lets through. An agent is a person's own tool
with a key of its own, and no candidate: it may use the network where its preset says so, and start what it likes. It
writes in its work folder and where the preset grants it, reads no home, no checkout and no other process's memory, and
reaches no socket that has a path. Imports no torch.

What stays open: names and command lines of processes, names, sizes, modes and times of files (Landlock refuses neither
stat nor chmod), and how much it takes of the machine.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from orchestrator.judge import channel, landlock, linux, proctree, sandbox, seccomp, surroundings
from orchestrator.judge.landlock import EVERYTHING, READ, Right, Rule
from orchestrator.records import SandboxPiece

_OWN = EVERYTHING & ~(Right.MAKE_CHAR | Right.MAKE_BLOCK | Right.IOCTL_DEV)
_DEVICE = Right.READ_FILE | Right.WRITE_FILE | Right.IOCTL_DEV
_TERMINALS = ("/dev/tty", "/dev/ptmx", "/dev/pts")  # agents run shells in them
_FOR_THE_NETWORK = (
    *("resolv.conf", "hosts", "host.conf", "gai.conf", "services", "protocols"),
    *("ssl", "pki", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
)
_POLL_S = 0.05
_ORDER_LIMIT = 4 << 20


@dataclass(frozen=True)
class Order:
    """One agent to start."""

    argv: tuple[str, ...]  # its first word is the program's path
    folder: str  # its current folder
    environment: dict[str, str]  # all of it
    writable: tuple[str, ...]
    readable: tuple[str, ...]  # beyond the interpreter, installed packages and system libraries
    network: bool
    confined_or_not_at_all: bool  # do not start it where a piece is missing

    def to_json(self) -> channel.Message:
        """For the way to the launcher."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Order:
        """What `to_json` gave."""
        lists = {name: tuple(values[name]) for name in ("argv", "writable", "readable")}
        return cls(**{**values, **lists})


def main() -> None:
    """Takes an order, says what holds, waits for the agent's end or for ours to hang up, and ends what is left."""
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    order = Order.from_json(channel.receive(line, limit=_ORDER_LIMIT))
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)  # nothing that it starts can leave the tree
    at_once = sandbox.keep_signals_inside(os.getppid(), tcp=order.network)
    agent, reading = _started(order)
    with os.fdopen(reading, "rb") as answers:
        pieces, _, failed = answers.read().partition(b"\n")  # ends at exec
    _say(line, {"pieces": json.loads(pieces or b"[]"), "failed": failed.decode(errors="replace")})
    status = _watched(agent, line)
    ended = proctree.kill_all(agent, at_once=at_once)
    _say(line, {"status": ended.get(agent) if status is None else status, "stopped": status is None})


def _say(line: socket.socket, message: channel.Message) -> None:
    with suppress(channel.ChannelClosed):  # then nobody is left to tell
        channel.send(line, message)


def _watched(agent: int, line: socket.socket) -> int | None:
    """The agent's wait status; None where ours hung up first, because time is up or because ours is dead."""
    while True:
        hung_up = bool(linux.readable([line.fileno()], _POLL_S))
        if (status := proctree.reap().get(agent)) is not None:
            return status
        if hung_up:
            return None


def _started(order: Order) -> tuple[int, int]:
    """The agent's process, and what to read its pieces from, then, where it could not be started, why."""
    reading, writing = os.pipe()
    agent = os.fork()
    if agent == 0:
        _become(order, writing)
    os.close(writing)
    return agent, reading


def _become(order: Order, answers: int) -> NoReturn:
    """In the fork: confined, then the agent. What was inherited closes at exec."""
    try:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        pieces = confine(order)
        os.write(answers, sandbox.pieces_to_json(pieces) + b"\n")
        missing = ", ".join(piece.name for piece in pieces if not piece.held)
        if missing and order.confined_or_not_at_all:
            os.write(answers, f"this machine lacks {missing}".encode())
        else:
            os.execve(order.argv[0], order.argv, order.environment)
    except OSError as error:
        os.write(answers, f"{error.strerror}: {error.filename or order.argv[0]}".encode())
    finally:
        os._exit(127)


def confine(order: Order) -> tuple[SandboxPiece, ...]:
    """Confines the calling process for good. Raises OSError only for what no Linux of the last decade refuses."""
    os.setsid()
    os.chdir(order.folder)
    pieces = [SandboxPiece("session", True)]
    pieces += [] if order.network else [sandbox.no_network()]
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    pieces += [SandboxPiece("no new privileges", True), *_landlock(order), _local_sockets()]
    return tuple(pieces)


def _landlock(order: Order) -> Iterator[SandboxPiece]:
    version = landlock.abi()
    files = version >= landlock.REFER_ABI
    if version:
        landlock.restrict(rules(order) if files else (), version, None if files else Right(0), tcp=order.network)
    for name, needed, gap in _LANDLOCK_PIECES:
        held = version >= needed
        here = f"Landlock ABI {version} here, {needed} is needed" if version else "no Landlock here"
        yield SandboxPiece(name, held, "" if held else f"{here}: {gap}")


_LANDLOCK_PIECES = (
    ("file rules", landlock.REFER_ABI, "the agent can read and write whatever you can"),
    ("truncation refused", landlock.TRUNCATE_ABI, "the agent can empty files that you may write"),
    ("signals kept inside", landlock.SCOPE_ABI, "the agent can end your other processes"),
)


def rules(order: Order) -> Iterator[Rule]:
    """What it may open, and how."""
    for own in order.writable:
        yield Rule(Path(own), _OWN)
    for path in (*surroundings.readable_paths(), *map(Path, order.readable)):
        plain = path.is_relative_to("/etc") or path.is_relative_to("/sys") or path.is_relative_to("/proc")
        yield Rule(path, READ if plain else READ | Right.EXECUTE)
    # All of /proc, for what it starts needs its own: Landlock itself keeps it from the memory and variables of others.
    yield Rule(Path("/proc"), READ)
    for name in _FOR_THE_NETWORK if order.network else ():
        yield Rule(Path("/etc") / name, READ)
    for node in surroundings.PLAIN_DEVICES:
        yield Rule(node, Right.READ_FILE | Right.WRITE_FILE)
    for node in (*map(Path, _TERMINALS), *surroundings.gpu_devices()):
        yield Rule(node, _DEVICE | Right.READ_DIR)


def _local_sockets() -> SandboxPiece:
    name, gap = "local sockets refused", "the agent reaches Docker's, ssh-agent's and the like"
    if not seccomp.supported():
        return SandboxPiece(name, False, f"no numbers for this architecture: {gap}")
    try:
        seccomp.refuse_local_sockets()
    except OSError as error:
        return SandboxPiece(name, False, f"{error.strerror}: {gap}")
    return SandboxPiece(name, True)


if __name__ == "__main__":
    main()
