"""Global state of the process that a call, or the import of a kernel file, left different.

Owns the list of what is looked at, each with the words for it, and the comparison. Values are compared by what they
are, functions by identity (`namespaces`). Warning filters, logging, caches of torch and triton, and Triton's allocator
are not looked at: honest code sets them. Threads and processes that are started and gone again within the call are
seen by an audit hook, which no Python code can take away.

Catches what a cheat leaves behind for the judge's or a later call's eyes. Cannot see: what is changed and changed back
within the call, and state inside C libraries.
"""

from __future__ import annotations

import _thread
import gc
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import torch
import triton
from triton import knobs

from orchestrator.judge.witness import namespaces
from orchestrator.judge.witness.origin import Origins

_MOST_REPORTED = 32
_TEXT = 160  # characters of a sentence
_MOST_DESCRIPTORS = 512
_KEYS = ("CPU", "CUDA", "HIP", "Autograd", "ADInplaceOrView", "Composite", "BackendSelect", "Python")
_LAZY_VARIABLES = {
    "CUDA_MODULE_LOADING",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
}  # torch sets them when it starts
_GROUPS = tuple(name for name, value in vars(knobs).items() if isinstance(value, knobs.base_knobs))

Value = Any
_started: State | None = None
_cuda_runs = torch.cuda.is_initialized  # as it is before anything stands in for a GPU


def _rng() -> Value:
    state = [torch.default_generator.get_state().numpy().tobytes()]
    if _cuda_runs():
        state += [generator.get_state().numpy().tobytes() for generator in torch.cuda.default_generators]
    return state


def _device() -> Value:
    if not _cuda_runs():
        return None
    return torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream


def _autocast() -> Value:
    kinds = ("cpu", "cuda")
    return [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds] + [
        (torch.is_autocast_cache_enabled(), None)
    ]


def _precision() -> Value:
    cuda = torch.backends.cuda.matmul
    return [
        _quietly(lambda: torch.get_float32_matmul_precision()),
        *(_quietly(getter) for getter in (torch._C._get_cublas_allow_tf32, torch._C._get_cudnn_allow_tf32)),
        _quietly(lambda: cuda.allow_fp16_reduced_precision_reduction),
        _quietly(lambda: cuda.allow_bf16_reduced_precision_reduction),
        _quietly(lambda: cuda.allow_fp16_accumulation),
        _quietly(lambda: (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic)),
    ]


def _quietly(getter: Callable[[], Value]) -> Value:
    """torch refuses to say when two ways of setting the same flag were mixed."""
    try:
        return getter()
    except (RuntimeError, AttributeError) as error:
        return type(error).__name__


def _deterministic() -> Value:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )


def _threads() -> Value:
    return sorted(thread.name[:40] for thread in threading.enumerate())


def _children() -> Value:
    """Whether there is a child that has not been waited for."""
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def _folder() -> Value:
    try:
        return os.getcwd()  # noqa: PTH109 - Path.cwd is a call more
    except OSError:
        return "none"


def _signals() -> Value:
    return [signal.getsignal(number) for number in range(1, 32)], signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _hooks() -> Value:
    return [
        *(sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook, threading.excepthook),
        *(sys.gettrace(), sys.getprofile(), *sys.meta_path, *sys.path_hooks),
    ]


def _path() -> Value:
    """Without the folder that a part of torch adds when it is first loaded (2.9)."""
    lazy = getattr(sys.modules.get("torch.distributed.nn.jit.instantiator"), "INSTANTIATED_TEMPLATE_DIR_PATH", None)
    return [entry for entry in sys.path if entry != lazy]


def _interpreter() -> Value:
    return gc.isenabled(), sys.getrecursionlimit(), sys.getswitchinterval(), len(gc.callbacks)


def _knobs() -> Value:
    found = []
    for name in _GROUPS:
        group = getattr(knobs, name)
        values = {**vars(group)}
        chains = {key: tuple(value.calls) for key, value in vars(type(group)).items() if hasattr(value, "calls")}
        found.append((name, values, chains))
    return found


def _overridden() -> Value:
    return _overridden_among(len(torch.library._impls))


@cache
def _overridden_among(_: int) -> Value:
    """By what keys: torch itself registers others (Meta, batching) when parts of it are first loaded."""
    own = (name for name in torch.library._impls if name.startswith("aten/"))
    return {name for name in own if name.rpartition("/")[2].startswith(_KEYS)}


# What is compared as a whole, with the words for a difference.
_WHOLE: dict[str, Callable[[], Value]] = {
    "the default dtype": torch.get_default_dtype,
    "grad mode": lambda: (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
    "the deterministic flags": _deterministic,
    "the precision flags (tf32, reduced precision, cudnn)": _precision,
    "torch's random state": _rng,
    "python's random state": lambda: hash(random.getstate()),
    "the current device or stream": _device,
    "the stack of dispatch modes": torch._C._len_torch_dispatch_stack,
    "the stack of function modes": torch._C._len_torch_function_stack,
    "autocast": _autocast,
    "the running threads": _threads,
    "child processes that were not waited for": _children,
    "the working directory": _folder,
    "a signal's handler or an alarm": _signals,
    "sys.stdout": lambda: sys.stdout,
    "sys.stderr": lambda: sys.stderr,
    "a hook of sys (excepthook, trace, profile, meta_path)": _hooks,
    "sys.path": _path,
    "the interpreter's switches (gc, recursion limit)": _interpreter,
    "triton's knobs or hooks": _knobs,
    "triton's active driver": lambda: vars(triton.runtime.driver).get("_active"),
    "implementations of torch's own operators": _overridden,
}


def _variables() -> dict[Any, Any]:
    return dict(getattr(os.environ, "_data", os.environ))  # undecoded: four times as fast


def _descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd")[:_MOST_DESCRIPTORS]:  # noqa: PTH208 - names alone
        with suppress(OSError):  # the listing's own descriptor is gone by now
            found[name] = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
    return found


class _Look:
    """Everything that is compared, at one moment."""

    def __init__(self) -> None:
        self.whole = {words: getter() for words, getter in _WHOLE.items()}
        self.variables = _variables()
        self.descriptors = _descriptors()

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
        self._quiet: tuple[str, ...] = (
            "/dev/",
            "anon_inode:",
            "/memfd:",
            "/proc/",
            "/sys/",
            tempfile.gettempdir() + os.sep,
        )
        if not interpreted:
            self._quiet += ("pipe:", "socket:")  # the driver opens them as it needs them
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
