"""A split of an op, run beside the whole: whether its parts composed give the same, and what each was called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
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


def composed(
    folder: str, module: str, function: str, reference: str, trials: list[str], text: str, whole: str
) -> dict[str, Any]:
    """`differs`: where the composed function, in float64, is not the reference; `calls`: each part's, in float32."""
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    calls: dict[str, list[dict[str, Any]]] = {}
    try:
        space: dict[str, Any] = {"__name__": "split"}
        exec(compile(text, "split.py", "exec"), space)
        _watch(space, whole, calls)
        with testfile.loaded(Path(folder), kernel) as test, torch.no_grad():
            for trial in (from_json(Trial, one) for one in trials):
                if why := _differs(test, reference, space[whole], trial, calls):
                    return {"differs": why, "calls": {}}
    except Exception as error:  # noqa: BLE001 - the model's split, executed
        return {"differs": f"{whole} raised {said(error)}", "calls": {}}
    return {"differs": "", "calls": calls}


def _watch(space: dict[str, Any], whole: str, calls: dict[str, list[dict[str, Any]]]) -> None:
    """Each part in the composing function's sight notes what it is called with."""
    for name, part in list(space.items()):
        if isinstance(part, FunctionType) and name != whole:
            space[name] = _noting(name, part, calls)


def _noting(name: str, part: FunctionType, calls: dict[str, list[dict[str, Any]]]) -> Callable[..., Any]:
    signature = inspect.signature(part)

    def noting(*positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named)
        bound.apply_defaults()
        given = bound.arguments
        tensors = {key: asdict(seen(value)) for key, value in given.items() if isinstance(value, torch.Tensor)}
        others = {key: value for key, value in given.items() if key not in tensors}
        calls.setdefault(name, []).append({"tensors": tensors, "others": others})
        return part(*positional, **named)

    return noting


def _differs(
    test: ModuleType, reference: str, whole: Callable[..., Any], trial: Trial, calls: dict[str, list[dict[str, Any]]]
) -> str:
    case = test.Case(trial.dims, "float32", 1.0)
    inputs = test.make_inputs(case, "cpu", trial.seed)
    want = tensors_of(test.exactly(inputs, case.parameters))
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    kept = {part: list(each) for part, each in calls.items()}
    got = tensors_of(whole(**wide, **case.parameters))
    calls.clear()
    calls.update(kept)  # in float64; what the parts are to be called with is what float32 brings
    whole(**inputs, **case.parameters)
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
