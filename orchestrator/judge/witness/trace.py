"""What a call asks of the GPU's driver: kernels launched, graphs replayed, memory filled and copied.

Owns a subscription to CUPTI's callbacks around one call; CUPTI comes with torch, and torch.profiler stands on it. The
profiler itself is not used because its first start takes about five seconds of a verdict; a subscription takes none.
Catches work that reaches the device past the dispatcher and past Triton: a library's kernel, an extension, a replayed
graph. Cannot see: what is asked after the call, what another subscriber to CUPTI keeps from it, and what a process
that lies takes off the list. There is no trace on AMD's GPUs.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path
from typing import Any

_MOST_LISTED = 64
_NAME = 160  # characters
_DRIVER_CALLS = 1  # CUPTI_CB_DOMAIN_DRIVER_API
_ENTER = 0  # CUPTI_API_ENTER
_WORK = ("cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset")


class _Called(ctypes.Structure):
    """The beginning of CUpti_CallbackData."""

    _fields_ = [
        ("site", ctypes.c_int),
        ("function", ctypes.c_char_p),
        ("parameters", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
    ]


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)


class Trace:
    """A context around one call; empty unless it was entered."""

    def __init__(self) -> None:
        self.own: frozenset[str] = frozenset()  # names of the file's own kernels
        self._names: Counter[str] | None = None
        self._missing = ""
        self._subscriber = ctypes.c_void_p()
        self._callback = _Callback(self._called)  # kept alive as long as it may be called

    def __enter__(self) -> Trace:
        self._library = _cupti()
        if self._library is None:
            self._missing = "this torch has no CUPTI loaded"
        elif code := self._library.cuptiSubscribe(ctypes.byref(self._subscriber), self._callback, None):
            self._missing = f"CUPTI refused a subscriber: error {code}"
        else:
            self._names = Counter()
            self._library.cuptiEnableDomain(ctypes.c_uint32(1), self._subscriber, ctypes.c_int(_DRIVER_CALLS))
        return self

    def __exit__(self, *_: object) -> None:
        if self._names is not None:
            self._library.cuptiUnsubscribe(self._subscriber)

    def _called(self, _: Any, domain: int, number: int, data: int) -> None:
        called = _Called.from_address(data)
        function = (called.function or b"").decode(errors="replace")
        if called.site == _ENTER and function.startswith(_WORK) and self._names is not None:
            self._names[(called.symbol or called.function).decode(errors="replace")[:_NAME]] += 1

    def found(self) -> dict[str, object]:
        """JSON values; nothing where no trace was asked for."""
        if self._missing:
            return {"trace_missing": self._missing}
        if self._names is None:
            return {}
        listed = self._names.most_common(_MOST_LISTED)
        return {"trace": [{"name": name, "times": times, "own": name in self.own} for name, times in listed]}


def _cupti() -> Any:
    """The library that torch has loaded, if it has."""
    mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
    path = next((name for name in mapped if Path(name).name.startswith("libcupti.so")), None)
    return None if path is None else ctypes.CDLL(path)
