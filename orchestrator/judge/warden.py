"""The process between judge and candidate: forks a candidate, watches it, ends it with everything it started.

Owns the life of one candidate at a time, from fork to the last reaped descendant, and the reasons for ending it that
need no judgement: memory, processes, disk. Owns no verdict and no channel: those are between judge and candidate.
Runs in a process of its own, forked from the judge before CUDA was initialised (`forkserver` does that).
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

from orchestrator.judge import linux, proctree, scratch
from orchestrator.judge.proctree import Usage
from orchestrator.judge.sandbox import (
    Confinement,
    confine,
    keep_signals_inside,
    make_undumpable,
    pieces_to_json,
    scrub_environment,
)

Target = Callable[[socket.socket, dict[str, object]], None]

MAX_MESSAGE_BYTES = 1 << 17
MAX_FDS = 64
_TICK_S = 0.05
_DISK_EVERY_S = 0.5
_CONFIRM_S = 0.01
_HIGHEST_FD = 1 << 20  # a descriptor may lie above a limit that was lowered since


@dataclass
class _Candidate:
    """The one that is alive."""

    number: int  # of the spawn, so that a late order cannot hit a later candidate
    pid: int
    pidfd: int
    confinement: Confinement
    inherited_bytes: int
    peak: Usage = field(default_factory=Usage)
    disk_checked: float = 0.0


class Warden:
    """The loop. `control` carries JSON messages, one a packet, with descriptors attached to a spawn."""

    def __init__(self, control: socket.socket, target: Target) -> None:
        self._control = control
        self._target = target
        self._judge = os.getppid()
        self._at_once = keep_signals_inside(self._judge)
        self._candidate: _Candidate | None = None

    def serve(self) -> None:
        """Until the judge is gone. Not the parent-death signal: it would kill us before we killed the candidate."""
        try:
            while os.getppid() == self._judge and self._wait_or_obey():
                if self._candidate is not None:
                    self._watch(self._candidate)
        finally:
            if self._candidate is not None:
                proctree.kill_all(self._candidate.pid, at_once=self._at_once)

    def _wait_or_obey(self) -> bool:
        """Waits for an order, the candidate's end or the next look at it. False when the judge has closed its end."""
        waiting = [self._control.fileno()]
        if self._candidate is not None:
            waiting.append(self._candidate.pidfd)
        ready = linux.readable(waiting, None if self._candidate is None else _TICK_S)
        return self._control.fileno() not in ready or self._obey()

    def _obey(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, MAX_FDS)
        if not message:
            return False
        order = json.loads(message)
        if order["order"] == "spawn":
            self._spawn(order, fds)
        elif self._candidate is not None and self._candidate.number == order["number"]:
            self._finish(self._candidate, "killed", order["why"], None)
        return True

    def _spawn(self, order: dict[str, Any], fds: list[int]) -> None:
        confinement = Confinement.from_json(order["confinement"])
        inherited = proctree.anonymous_bytes(os.getpid())
        warden, pid = os.getpid(), os.fork()
        if pid == 0:
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == warden:  # or it died before the line above
                become_candidate(self._target, order["config"], confinement, fds)
            os._exit(1)
        for descriptor in fds:
            os.close(descriptor)
        self._candidate = _Candidate(order["number"], pid, os.pidfd_open(pid), confinement, inherited)
        self._tell({"number": order["number"], "pid": pid}, [self._candidate.pidfd])

    def _watch(self, candidate: _Candidate) -> None:
        excess, ended = self._excess(candidate, self._look(candidate)), proctree.reap()
        if candidate.pid in ended and excess is None:
            self._finish(candidate, "", "", ended[candidate.pid])
        elif excess is not None:
            self._finish(candidate, *excess, ended.get(candidate.pid))

    def _look(self, candidate: _Candidate) -> Usage:
        now = proctree.usage(candidate.inherited_bytes, enough=candidate.confinement.limits.processes + 1)
        candidate.peak = candidate.peak.peak(now)
        return now

    def _excess(self, candidate: _Candidate, now: Usage) -> tuple[str, str] | None:
        """The reason to end it, and the reason in words."""
        limits = candidate.confinement.limits
        if now.processes > limits.processes or now.threads > limits.threads:
            allowed = f"{limits.processes} processes, {limits.threads} threads"
            return "processes", f"at least {now.processes} processes, {now.threads} threads; the limit is {allowed}"
        if now.resident_bytes > limits.memory_bytes:
            # Between fork and exec of a helper (gcc, ptxas) the same memory shows twice: look again before judging.
            time.sleep(_CONFIRM_S)
            if (again := self._look(candidate)).resident_bytes > limits.memory_bytes:
                held, limit = again.resident_bytes >> 20, limits.memory_bytes >> 20
                return "memory", f"{held} MiB resident in {again.processes} processes; the limit is {limit} MiB"
        if time.monotonic() - candidate.disk_checked > _DISK_EVERY_S:
            candidate.disk_checked = time.monotonic()
            if words := scratch.excess(candidate.confinement.scratch, limits.disk_bytes, limits.files):
                return "disk", words
        return None

    def _finish(self, candidate: _Candidate, reason: str, detail: str, status: int | None) -> None:
        """Kills what is left, and tells the judge. With no reason of ours, the wait status says how it ended."""
        ended = proctree.kill_all(candidate.pid, at_once=self._at_once)
        status = ended.get(candidate.pid, 0) if status is None else status
        by_signal = os.WIFSIGNALED(status)
        self._candidate = None
        os.close(candidate.pidfd)
        self._tell(
            {
                "number": candidate.number,
                "reason": reason or ("signal" if by_signal else "exited"),
                "detail": detail,
                "code": None if by_signal else os.WEXITSTATUS(status),
                "signal": os.WTERMSIG(status) if by_signal else None,
                "peak_resident_bytes": candidate.peak.resident_bytes,
                "peak_processes": candidate.peak.processes,
            }
        )

    def _tell(self, message: dict[str, Any], fds: Iterable[int] = ()) -> None:
        with suppress(BrokenPipeError):  # the judge is gone; the loop will see it
            socket.send_fds(self._control, [json.dumps(message).encode()], list(fds))


def become_warden(control: socket.socket, target: Target, prepare: Callable[[], None] | None = None) -> NoReturn:
    """Turns a fresh fork of the judge into the warden; never returns."""
    code = 1
    try:
        os.setsid()  # Ctrl-C in the terminal is the orchestrator's to handle
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        make_undumpable()
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        _close_all_but([0, 1, 2, control.fileno()])
        _standard_streams()
        if prepare is not None:
            prepare()
        gc.freeze()  # what is loaded stays; collecting it in each candidate would only copy pages
        Warden(control, target).serve()
        code = 0
    except BaseException:  # noqa: BLE001  the last frame of a forked process: nobody above may catch it
        traceback.print_exc()
    finally:
        os._exit(code)


def become_candidate(target: Target, config: dict[str, Any], confinement: Confinement, fds: list[int]) -> NoReturn:
    """Turns a fresh fork of the warden into a confined candidate; never returns.

    The pieces go through a pipe that is closed before the target runs, so no code of the candidate's can write there.
    """
    channel, output, pieces, *passed = fds
    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        _close_all_but([0, 1, 2, channel, pieces, *passed])
        _standard_streams()
        _default_signals()
        scrub_environment(confinement.scratch)
        os.chdir(confinement.scratch)
        held = pieces_to_json(confine(confinement))
        os.write(pieces, held)
        os.close(pieces)
        target(socket.socket(fileno=channel), config | {"fds": passed})
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001  the last frame of a forked process: nobody above may catch it
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code & 0xFF)


def _close_all_but(kept: Iterable[int]) -> None:
    """Closes every other descriptor, those of libraries included: none of them is meant for a candidate."""
    edges = [-1, *sorted(kept), max(os.sysconf("SC_OPEN_MAX"), _HIGHEST_FD)]
    for below, above in pairwise(edges):
        if below + 1 < above:  # an empty range means "all" to closerange
            os.closerange(below + 1, above)


def _standard_streams() -> None:
    """Fresh Python streams: those of the judge may be replaced, or hold text that is not ours to print."""
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    faulthandler.enable(2)  # a segfault leaves its traceback in the output; also forgets an older descriptor


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
