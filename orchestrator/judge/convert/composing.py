"""A split of an op, run beside the whole: whether its parts composed give the same, and what each was called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch

from orchestrator.judge import testfile
from orchestrator.judge.convert.seen import seen, tensors_of
from orchestrator.judge.convert.subject import said
from orchestrator.probed import Trial
from orchestrator.records import from_json

_DIGITS = 1e-9  # agreement in float64, in which the order of a sum does not show


def composed(folder: str, module: str, function: str, trials: list[str], text: str, whole: str) -> dict[str, Any]:
    """`differs`: where the composed function, in float64, is not the reference; `calls`: each part's, in float32."""
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    calls: dict[str, list[dict[str, Any]]] = {}
    watched = _Watched(calls)
    try:
        space: dict[str, Any] = {"__name__": "split"}
        exec(compile(text, "split.py", "exec"), space)
        _watch(space, whole, watched)
        with testfile.loaded(Path(folder), kernel) as test, torch.no_grad():
            for trial in (from_json(Trial, one) for one in trials):
                if why := _differs(test, space[whole], trial, watched):
                    return {"differs": why, "calls": {}}
    except Exception as error:  # noqa: BLE001 - the model's split, executed
        return {"differs": f"{whole} raised {said(error)}", "calls": {}}
    return {"differs": "", "calls": calls, "inner": watched.inner, "passed_on": watched.passed_on}


class _Watched:
    """What the parts were called with, and what passes between them: by where it lies in memory, which views share."""

    def __init__(self, calls: dict[str, list[dict[str, Any]]]) -> None:
        self.calls = calls
        self.inner: dict[str, list[str]] = {}  # arguments of a part that another part made
        self.passed_on: dict[str, list[int]] = {}  # results of a part that the whole does not return
        self._made: list[tuple[str, int, torch.Tensor]] = []

    def called(self, part: str, arguments: Mapping[str, Any]) -> None:
        """A part is about to be called."""
        tensors = {key: value for key, value in arguments.items() if isinstance(value, torch.Tensor)}
        others = {key: value for key, value in arguments.items() if key not in tensors}
        facts = {key: asdict(seen(value)) for key, value in tensors.items()}
        self.calls.setdefault(part, []).append({"tensors": facts, "others": others})
        made = {_place(tensor) for _, _, tensor in self._made}
        self.inner[part] = [key for key, value in tensors.items() if _place(value) in made]

    def made(self, part: str, result: Any) -> None:
        """A part has returned."""
        self._made += [(part, at, tensor) for at, tensor in enumerate(tensors_of(result) or ())]

    def returned(self, result: Any) -> None:
        """The whole has returned: what it returns is no interface."""
        ends = {_place(tensor) for tensor in tensors_of(result) or ()}
        self.passed_on = {part: [] for part, _, _ in self._made}
        for part, at, tensor in self._made:
            if _place(tensor) not in ends:
                self.passed_on[part].append(at)
        self._made = []


def _place(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _watch(space: dict[str, Any], whole: str, watched: _Watched) -> None:
    """Each part in the composing function's sight tells what it is called with."""
    for name, part in list(space.items()):
        if isinstance(part, FunctionType) and name != whole:
            space[name] = _telling(name, part, watched)


def _telling(name: str, part: FunctionType, watched: _Watched) -> Callable[..., Any]:
    signature = inspect.signature(part)

    def telling(*positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named)
        bound.apply_defaults()
        watched.called(name, bound.arguments)
        result = part(*positional, **named)
        watched.made(name, result)
        return result

    return telling


def _differs(test: ModuleType, whole: Callable[..., Any], trial: Trial, watched: _Watched) -> str:
    case = test.Case(trial.dims, trial.dtype, trial.scale)
    inputs = test.make_inputs(case, "cpu", trial.seed)
    want = tensors_of(test.exactly(inputs, case.parameters))
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    watched.returned(whole(**inputs, **case.parameters))
    kept = {part: list(each) for part, each in watched.calls.items()}
    got = tensors_of(whole(**wide, **case.parameters))
    watched.returned(got)
    watched.calls.update(kept)  # what the parts are to be called with is what float32 brought
    if got is None or want is None or [one.shape for one in got] != [one.shape for one in want]:
        shapes = None if got is None else [tuple(one.shape) for one in got]
        return f"on {case.name} it returns {shapes}, and the whole {[tuple(one.shape) for one in want or ()]}"
    for one, other in zip(got, want, strict=True):
        size = float(other.double().abs().nan_to_num().max()) if other.numel() else 0.0
        if not torch.allclose(one.double(), other.double(), rtol=_DIGITS, atol=_DIGITS * size, equal_nan=True):
            return (
                f"on {case.name} it is off the whole by up to {float((one.double() - other.double()).abs().max()):.3g}"
            )
    return ""
