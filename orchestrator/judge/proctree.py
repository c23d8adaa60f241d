"""The processes beneath one process: how many, how much memory, and how to end them all.

Owns reading /proc for that. Works on the descendants of the *calling* process, which must be a subreaper: then a daemon
whose parents have died is its child, and nothing a candidate starts can leave the tree.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_KILL_DEADLINE_S = 20.0
_FLAGS_FIELD, _PF_FORKNOEXEC = 6, 0x40  # in /proc/PID/stat, counted from the field after the name
_GONE = (FileNotFoundError, ProcessLookupError)  # a process may end between being found and being read


@dataclass(frozen=True)
class Usage:
    """What the processes beneath one process hold."""

    processes: int = 0
    threads: int = 0
    resident_bytes: int = 0  # anonymous and shared memory; not files, which the kernel can drop

    def peak(self, other: Usage) -> Usage:
        """The larger of each."""
        return Usage(
            max(self.processes, other.processes),
            max(self.threads, other.threads),
            max(self.resident_bytes, other.resident_bytes),
        )


def descendants(root: int) -> Iterator[int]:
    """Every process beneath `root`, parents before children, as found while walking."""
    waiting = list(_children(root))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_GONE):
                children += map(int, (task / "children").read_text().split())
    return children


def usage(inherited_bytes: int) -> Usage:
    """What the calling process's descendants hold.

    A process forked without exec shares `inherited_bytes` with the caller copy-on-write, and they are not counted. One
    that unmaps them hides as much of its own: the limit on processes bounds how often.
    """
    total = Usage()
    for pid in descendants(os.getpid()):
        with suppress(*_GONE, KeyError):  # a zombie's status has no memory fields
            fields = _status(pid)
            resident = _bytes(fields["RssAnon"]) + _bytes(fields["RssShmem"])
            own = max(0, resident - inherited_bytes) if _is_plain_fork(pid) else resident
            total = Usage(total.processes + 1, total.threads + int(fields["Threads"]), total.resident_bytes + own)
    return total


def _is_plain_fork(pid: int) -> bool:
    """Whether the process has not called exec since its fork."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return bool(int(fields[_FLAGS_FIELD]) & _PF_FORKNOEXEC)


def anonymous_bytes(pid: int) -> int:
    """Anonymous resident memory of one process: what a fork of it inherits copy-on-write."""
    return _bytes(_status(pid)["RssAnon"])


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _bytes(text: str) -> int:
    return int(text.split()[0]) * 1024  # always given in kB


def reap() -> dict[int, int]:
    """Collects every child that has ended; the wait status of each by process id."""
    ended = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


def kill_all(first: int) -> dict[int, int]:
    """Ends every descendant of the calling process, `first` and its group before the others; returns what `reap` gave.

    A signal that is pending stops a fork, so killing parents first starves a fork bomb; what slipped through has
    become our own child by the next round. TimeoutError when some remain after many rounds.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + _KILL_DEADLINE_S
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(first, signal.SIGKILL)
    while True:
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= reap()
        if not _children(os.getpid()):
            return ended
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of the candidate survive SIGKILL: {_children(os.getpid())}")
