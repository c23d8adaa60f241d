"""Calls of one function, seen while a script of the person's runs, written down as facts.

This file is copied as `sitecustomize.py` into a folder that comes first on the path of the person's Python, which may
be another than ours: it imports nothing of ours, and torch only once the script has. It looks at calls from outside
(sys.setprofile), so that nothing of the script changes; what Python does not see, inside a compiled graph, it does not.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_MOST = 64  # calls written down
_LITERAL = (bool, int, float, str, type(None))


class Tracer:
    """Which code objects are meant, and what their calls had."""

    def __init__(self, asked: dict[str, str]) -> None:
        self._path = os.path.realpath(asked["path"])
        self._names = {asked["call"]: "call", asked["first"] + ".__init__": "init"}
        self._out = Path(asked["out"])
        self._known: dict[CodeType, str] = {}
        self._calls: list[dict[str, Any]] = []
        self._init: dict[int, dict[str, Any]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What sys.setprofile calls."""
        if event != "call" or len(self._calls) >= _MOST:
            return
        kind = self._known.get(frame.f_code)
        if kind is None:
            kind = self._known[frame.f_code] = self._kind(frame.f_code)
        if not kind:
            return
        sys.setprofile(None)  # what torch does to tell of a tensor is of no interest
        try:
            self._note(kind, frame)
        finally:
            sys.setprofile(self)

    def _kind(self, code: CodeType) -> str:
        kind = self._names.get(getattr(code, "co_qualname", code.co_name), "")
        return kind if kind and os.path.realpath(code.co_filename) == self._path else ""

    def _note(self, kind: str, frame: FrameType) -> None:
        arguments = _arguments(frame)
        owner = arguments.pop("self", None)
        literal = {name: value for name, value in arguments.items() if isinstance(value, _LITERAL)}
        tensors = {name: seen(value) for name, value in arguments.items() if _is_tensor(value)}
        odd = {name: type(value).__name__ for name, value in arguments.items() if name not in {**literal, **tensors}}
        if kind == "init":
            self._init[id(owner)] = {"literal": literal, "odd": {**odd, **dict.fromkeys(tensors, "Tensor")}}
            return
        self._calls.append({"tensors": tensors, "others": literal, "odd": odd, "init": self._init.get(id(owner))})
        self.write()

    def write(self) -> None:
        """What has been seen so far; the file is whole at any time."""
        partial = self._out.with_suffix(".part")
        partial.write_text(json.dumps({"calls": self._calls}))
        partial.replace(self._out)


def _arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: frame.f_locals[name] for name in names if name in frame.f_locals}


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def seen(tensor: Any) -> dict[str, Any]:
    """The same facts of a tensor as the probe has; it is only read."""
    dtype = str(tensor.dtype).replace("torch.", "")
    fact = {"shape": list(tensor.shape), "dtype": dtype, "contiguous": bool(tensor.is_contiguous())}
    if tensor.is_complex():
        return fact
    values = tensor.detach().double()
    values = values[values.isfinite()]
    if values.numel():
        fact.update(low=values.min().item(), high=values.max().item())
        fact.update(mean=values.mean().item(), spread=values.std(correction=0).item())
    return fact


def _go_on() -> None:
    """Run the sitecustomize that this one stands before."""
    here = Path(__file__).resolve().parent
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if Path(p).resolve() != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "ORCHESTRATOR_TRACE" in os.environ:
    _tracer = Tracer(json.loads(os.environ.pop("ORCHESTRATOR_TRACE")))
    _tracer.write()
    _go_on()
    sys.setprofile(_tracer)
    threading.setprofile(_tracer)
