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
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

_KILL_DEADLINE_S = 20.0
_BETWEEN_KILLS_S = 0.001
_KILLED_AT_ONCE = 1000
_REAPED_AT_ONCE = 1000
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


def usage(inherited_bytes: int, enough: int) -> Usage:
    """What the calling process's descendants hold, counted up to `enough` processes: a bomb grows faster than a walk.

    A process forked without exec shares `inherited_bytes` with the caller copy-on-write, and they are not counted. One
    that unmaps them hides as much of its own: the limit on processes bounds how often.
    """
    total = Usage()
    for pid in islice(descendants(os.getpid()), enough):
        with suppress(*_GONE, KeyError):  # a zombie's status has no memory fields
            fields = _status(pid)
            total = replace(total, processes=total.processes + 1, threads=total.threads + int(fields["Threads"]))
            resident = _bytes(fields["RssAnon"]) + _bytes(fields["RssShmem"])
            own = max(0, resident - inherited_bytes) if _is_plain_fork(pid) else resident
            total = replace(total, resident_bytes=total.resident_bytes + own)
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
    """Collects children that have ended, not endlessly many; the wait status of each by process id."""
    ended = {}
    with suppress(ChildProcessError):
        for _ in range(_REAPED_AT_ONCE):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def kill_all(first: int, *, at_once: bool) -> dict[int, int]:
    """Ends every descendant of the calling process, and returns the wait status of each.

    `at_once`: the caller can signal nothing but its descendants (`sandbox.keep_signals_inside`), so that one call
    reaches all of them and no fork slips through. Otherwise they are hunted one by one, parents first, since a pending
    signal stops a fork; as root on many cores a bomb may outrun that. TimeoutError when some are left in the end.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + _KILL_DEADLINE_S
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(-1 if at_once else -first, signal.SIGKILL)
        if not at_once:
            _kill_one_by_one()
        ended |= reap()
        if _has_no_child():
            return ended
        time.sleep(_BETWEEN_KILLS_S if at_once else 0)
    raise TimeoutError("processes of the candidate survive SIGKILL")


def _kill_one_by_one() -> None:
    for pid in islice(descendants(os.getpid()), _KILLED_AT_ONCE):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _has_no_child() -> bool:
    """Then there is no descendant either: those whose parents died became children of ours."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
