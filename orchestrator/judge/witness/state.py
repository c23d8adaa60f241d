"""Global state of the process that a call, or the import of a kernel file, left different.

Owns the comparison of two looks (`looks` says at what), and what is started in between. Values are compared by what
they are, functions by identity (`namespaces`). Threads and processes that are started and gone again within the call
are seen by an audit hook, which no Python code can take away.

Catches what a cheat leaves behind for the judge's or a later call's eyes. Cannot see: what is changed and changed back
within the call, and state inside C libraries.
"""

from __future__ import annotations

import _thread
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

import torch

from orchestrator.judge.witness import looks, namespaces
from orchestrator.judge.witness.looks import Value
from orchestrator.judge.witness.origin import Origins

_MOST_REPORTED = 32
_TEXT = 160  # characters of a sentence
_LAZY_VARIABLES = {"CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}  # torch sets them as it starts
_QUIET = ("/dev/", "anon_inode:", "/memfd:", "/proc/", "/sys/")  # descriptors that lead nowhere
_DRIVERS = ("pipe:", "socket:")  # a GPU's driver opens them as it needs them
_started: State | None = None


class _Look:
    """Everything that is compared, at one moment."""

    def __init__(self) -> None:
        self.whole = {words: getter() for words, getter in looks.WHOLE.items()}
        self.variables = looks.variables()
        self.descriptors = looks.descriptors()

    def since(self, before: _Look, quiet: tuple[str, ...]) -> list[str]:
        found = [f"{words} changed" for words, value in self.whole.items() if _differ(before.whole[words], value)]
        found += [
            f"the environment variable {name[:60]} changed" for name in _changed(before.variables, self.variables)
        ]
        return found + _opened(before.descriptors, self.descriptors, quiet)


def _differ(before: Value, after: Value) -> bool:
    """Unlike, without asking objects of the candidate's whether they are equal to ours."""
    if before is after:
        return False
    if type(before) is not type(after):
        return True
    if isinstance(before, list | tuple):
        return len(before) != len(after) or any(map(_differ, before, after))
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(_differ(before[key], after[key]) for key in before)
    if isinstance(before, str | bytes | int | float | set | torch.dtype):
        return bool(before != after)
    return True


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[str]:
    if before == after:
        return []
    names = {os.fsdecode(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return sorted(names - _LAZY_VARIABLES)


def _opened(before: Mapping[str, str], after: Mapping[str, str], quiet: tuple[str, ...]) -> list[str]:
    new = {name: target for name, target in after.items() if before.get(name) != target}
    return [
        f"descriptor {name} is open on {target[:80]}" for name, target in new.items() if not target.startswith(quiet)
    ]


class State:
    """Looks before and after; one for each candidate."""

    def __init__(self, origins: Origins, *, interpreted: bool) -> None:
        self._origins = origins
        self._quiet = (*_QUIET, *(() if interpreted else _DRIVERS), tempfile.gettempdir() + os.sep)
        self._events: list[str] = []
        _listen()
        namespaces.wide().changes()  # what was put in place since it was taken is ours
        self._near, self._middle = namespaces.near(), namespaces.middle()
        self._before = _Look()

    def begin(self) -> None:
        """Look, before a call."""
        global _started
        self._events = []
        self._before = _Look()
        _started = self

    def end(self) -> list[str]:
        """What differs now, in sentences. The next look begins here."""
        global _started
        _started = None
        now = _Look()
        found = self._events + now.since(self._before, self._quiet) + self._near.changes()
        self._before = now
        return [sentence[:_TEXT] for sentence in found[:_MOST_REPORTED]]

    def imported(self) -> list[str]:
        """What differs after the import, where any function may have been replaced."""
        return self.end() + self._middle.changes(bodies=True)

    def final(self) -> list[str]:
        """Replaced functions anywhere in torch, triton, numpy, our own modules and what else is near."""
        snapshots = (self._near, self._middle, namespaces.wide())
        found = [sentence for snapshot in snapshots for sentence in snapshot.changes(bodies=True)]
        return list(dict.fromkeys(found))[:_MOST_REPORTED]

    def started(self, event: str) -> None:
        """A thread or process was started; Triton starts its assembler that way."""
        origin = self._origins.of(sys._getframe(2))
        if origin.candidate and len(self._events) < _MOST_REPORTED:
            self._events.append(f"{_EVENTS[event]} was started at line {origin.line}")


_EVENTS = {
    "_thread.start_new_thread": "a thread",
    "_thread.start_joinable_thread": "a thread",
    "os.fork": "a process",
    "os.forkpty": "a process",
    "os.posix_spawn": "a process",
    "os.system": "a process",
    "os.exec": "a program",
    "subprocess.Popen": "a process",
}
_listening = False


def _audit(event: str, _: tuple[object, ...]) -> None:
    if event in _EVENTS and _started is not None:
        _started.started(event)


def _listen() -> None:
    """Once per process: an audit hook stays."""
    global _listening
    if _listening:
        return
    _listening = True
    sys.addaudithook(_audit)
    if sys.version_info < (3, 12):  # starts threads without an audit event
        start = _thread.start_new_thread

        def start_new_thread(*args: Any, **kwargs: Any) -> int:
            _audit("_thread.start_new_thread", ())
            return start(*args, **kwargs)

        _thread.start_new_thread = threading._start_new_thread = start_new_thread  # type: ignore[attr-defined]
