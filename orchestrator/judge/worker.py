"""What runs inside the confined process, beside the candidate's own code.

Imports the kernel file, calls the entry function on tensors that lie in the judge's buffers, copies the result into
the judge's output buffer and says what it saw. The candidate shares this interpreter and can rewrite all of it:
whatever is said here may convict, and only values that the judge compares itself acquit.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge import channel, interpreter
from orchestrator.judge.memory import Attached, Slot, device_of, slots, tensor_in, torch_dtype
from orchestrator.judge.ways import Way
from orchestrator.judge.witness import Witness

_CAP = 4000  # characters of any text that goes to the judge
_MOST_RESULTS = 16
_KEPT_CALLS = 3  # calls whose results can still be fetched
_FRAMES = 12  # innermost lines of a traceback that are kept


def main(sock: socket.socket, config: dict[str, Any]) -> None:
    """Serve the judge until it hangs up. `config` names the kernel file, module, function, device and descriptors."""
    serve(sock, State(config))


def serve(sock: socket.socket, state: State) -> None:
    """Answer the judge's messages, one after the other, until it hangs up."""
    while True:
        try:
            message = channel.receive(sock)
        except channel.ChannelClosed:
            return
        answer = state.answer(message)
        channel.send(sock, {"id": message.get("id"), **answer})


class State:
    """What the process holds between two messages, and what it does on each."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._cuda = config["device"] == "cuda"
        self._arenas: list[Attached] = []
        self._entry: Callable[..., object] | None = None
        self._results: dict[int, tuple[Any, ...]] = {}  # by the number of the call, the last few
        self._witness: Witness | None = None
        self._actions = {
            "attach": self._attach,
            "import": self._import,
            "call": self._call,
            "deliver": self._deliver,
            "warm": self._warm,
            "configurations": self._configurations,
            "choose": self._choose,
            "launched": self._launched,
            "final": self._final,
        }

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked; what it raises is the answer. This is the boundary: candidates raise anything."""
        try:
            return self._actions[message["do"]](message)
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of a candidate are answers too
            return {"event": "raised", "lost": self._lost(), **_describe(error, self._config["kernel"])}

    def _import(self, message: dict[str, Any]) -> dict[str, Any]:
        if not self._cuda:
            interpreter.stand_in()  # host code may ask for a GPU; before the witness, for which it would be a change
        self._witness = Witness(self._config["kernel"], interpreted=not self._cuda)
        self._entry = load_function(self._config["kernel"], self._config["module"], self._config["function"])
        return {"event": "imported", "state": self._witness.imported()}

    def _attach(self, message: dict[str, Any]) -> dict[str, Any]:
        fds = self._config["fds"] or [None, None]
        self._arenas = [Attached(handle, fd) for handle, fd in zip(message["arenas"], fds, strict=True)]
        return {"event": "attached"}

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._entry is not None
        tensors = {name: self._tensor(0, slot) for name, slot in message["inputs"].items()}
        watching = self._witness.watching(tensors, Way(message["way"])) if self._witness else nullcontext()
        with watching as seen:
            result = self._entry(**tensors, **message["parameters"])
            self._synchronize()  # what the call left running must fail or finish within it
        results = result if type(result) is tuple else (result,)
        self._results[message["id"]] = results
        for old in list(self._results)[:-_KEPT_CALLS]:
            del self._results[old]
        evidence = seen.evidence(results[:_MOST_RESULTS]) if seen is not None else {}  # timed processes have none
        self._hand_over(results)
        return {"event": "returned", **describe_results(result), "evidence": evidence}

    def _deliver(self, message: dict[str, Any]) -> dict[str, Any]:
        self._hand_over(self._results[message["call"]])
        return {"event": "delivered"}

    def _hand_over(self, results: tuple[Any, ...]) -> None:
        """Copy them to where the judge looks. What is no plain tensor of this device the judge refuses, unseen."""
        device = self._config["device"]
        if len(results) > _MOST_RESULTS or not all(
            type(one) is torch.Tensor and one.layout is torch.strided and device_of(one).type == device
            for one in results
        ):
            return
        arena = self._arenas[1]
        placed, needed = slots([(tuple(one.shape), one.dtype, None) for one in results])
        if needed <= arena.nbytes:
            for slot, result in zip(placed, results, strict=True):
                tensor_in(arena.region(slot), slot).copy_(result)
            self._synchronize()

    def _launched(self, message: dict[str, Any]) -> dict[str, Any]:
        more = [] if self._cuda else interpreter.specializations()[message["after"] :]
        return {"event": "told", "specializations": [one.to_json() for one in more]}

    def _final(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._witness is not None
        launched = self._launched({"after": 0})["specializations"]
        return {"event": "final", "state": self._witness.final(), "specializations": launched}

    def _warm(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile what a call would launch. Only scouts are asked."""
        assert self._entry is not None and self._witness is not None
        tensors = {
            name: torch.empty_strided(shape, strides, dtype=torch_dtype(dtype), device=self._config["device"])
            for name, (shape, strides, dtype) in message["inputs"].items()
        }
        with self._witness.watching(tensors, Way.MUTED):
            self._entry(**tensors, **message["parameters"])
        return {"event": "warmed"}

    def _configurations(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"event": "counted", "count": interpreter.configurations()}

    def _choose(self, message: dict[str, Any]) -> dict[str, Any]:
        interpreter.choose_configuration(message["index"])
        return {"event": "chosen"}

    def _tensor(self, arena: int, fields: dict[str, Any]) -> torch.Tensor:
        strides = None if fields["strides"] is None else tuple(fields["strides"])
        slot = Slot(fields["offset"], tuple(fields["shape"]), fields["dtype"], fields["zone"], strides)
        return tensor_in(self._arenas[arena].region(slot), slot)

    def _lost(self) -> bool:
        """Whether the GPU's context is unusable, as after an illegal address; nothing in this process mends it."""
        try:
            self._synchronize()
        except RuntimeError:
            return True
        return False

    def _synchronize(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def load_function(path: str, module: str, name: str) -> Callable[..., object]:
    """The function of that name in the file, imported as `module`. What the file raises goes to the caller."""
    function = getattr(_load(path, module), name)
    if not callable(function):
        raise TypeError(f"{name} is {type(function).__name__}, not a function")
    entry: Callable[..., object] = function
    return entry


def _load(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def describe_results(result: object) -> dict[str, object]:
    """What was returned, as the judge is told."""
    results = result if type(result) is tuple else (result,)
    return {"tuple": type(result) is tuple, "results": [_describe_result(item) for item in results[:_MOST_RESULTS]]}


def _describe_result(item: object) -> dict[str, object]:
    if not isinstance(item, torch.Tensor):
        return {"type": type(item).__name__[:80]}
    return {
        "type": "torch.Tensor" if type(item) is torch.Tensor else f"{type(item).__name__}, a subclass"[:80],
        "shape": list(item.shape)[:16],
        "dtype": str(item.dtype).removeprefix("torch."),
        "device": device_of(item).type,
        "layout": str(item.layout),
    }


def _describe(error: BaseException, kernel: str) -> dict[str, Any]:
    """The exception as text, its innermost frames, and whether Triton's compiler raised it."""
    frames = [frame for link in _chain(error) for frame in traceback.extract_tb(link.__traceback__)]
    own = [frame for frame in frames if frame.filename == kernel]
    lines = [
        f"  {Path(f.filename).name}, line {f.lineno}, in {f.name}\n    {f.line}\n" for f in (own or frames)[-_FRAMES:]
    ]
    return {
        "kind": "compile" if _from_compiler(error) else "runtime",
        "type": type(error).__name__[:80],
        "text": str(error)[-_CAP:],
        "trace": "".join(lines)[-_CAP:],
        "limit": (interpreter.is_limit(error) or "")[:_CAP] if os.environ.get("TRITON_INTERPRET") == "1" else "",
    }


def _from_compiler(error: BaseException) -> bool:
    """Whether Triton's compiler or assembler raised it or what caused it, or resources ran out."""
    modules = ("triton.compiler", "triton.runtime.errors", "triton.backends")
    return isinstance(error, SyntaxError | ImportError) or any(
        type(link).__module__.startswith(modules) for link in _chain(error)
    )


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, outermost first."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(chain) < _FRAMES:
        chain.append(link)
        link = link.__cause__
    return chain
