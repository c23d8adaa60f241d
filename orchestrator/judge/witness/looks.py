"""What of the process's global state is looked at, each with the words for it.

Owns the list. Warning filters, logging, caches of torch and triton, and Triton's allocator are not on it: honest code
sets them. What two looks say about a call is `state`'s.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import torch
import triton
from triton import knobs

_MOST_DESCRIPTORS = 512
_KEYS = ("CPU", "CUDA", "HIP", "Autograd", "ADInplaceOrView", "Composite", "BackendSelect", "Python")
_GROUPS = tuple(name for name, value in vars(knobs).items() if isinstance(value, knobs.base_knobs))

Value = Any
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
WHOLE: dict[str, Callable[[], Value]] = {
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


def variables() -> dict[Any, Any]:
    """The environment, as its bytes."""
    return dict(getattr(os.environ, "_data", os.environ))  # decoding takes four times as long


def descriptors() -> dict[str, str]:
    """What each open descriptor is."""
    found = {}
    for name in os.listdir("/proc/self/fd")[:_MOST_DESCRIPTORS]:  # noqa: PTH208 - names alone
        with suppress(OSError):  # the listing's own descriptor is gone by now
            found[name] = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
    return found
