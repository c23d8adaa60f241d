"""An op to be, run on cases of its own test file: which it takes, how well float32 does there.

The test file is the one that the judge would run, so what works here works there. There is no kernel: only the
reference is called, and what the op would compare with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orchestrator.judge import testfile
from orchestrator.judge.convert.examine import Kept
from orchestrator.judge.convert.flops import counted
from orchestrator.judge.convert.seen import seen, tensors_of
from orchestrator.judge.convert.subject import changed, constructed, said
from orchestrator.probed import Counted, Outcome, Trial
from orchestrator.records import from_json, to_json

_SEED = 11
_REL = 1e-5  # of a result, which its tolerance in float32 allows at least


def counts(folder: str, module: str, function: str, reference: str, trials: list[str]) -> list[str]:
    """How many floating-point operations the reference makes in each trial."""
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    with testfile.loaded(Path(folder), kernel) as test:
        return [to_json(_count(test, getattr(test, reference), from_json(Trial, one)), indent=None) for one in trials]


def _count(test: ModuleType, reference: Any, trial: Trial) -> Counted:
    case = _case(test, trial)
    inputs = test.make_inputs(case, "cpu", trial.seed)
    return counted(lambda: reference(**inputs, **case.parameters))


def run(folder: str, module: str, function: str, reference: str, trials: list[str]) -> list[str]:
    """The outcome of each trial, on the op whose workspace files are in the folder."""
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    with testfile.loaded(Path(folder), kernel) as test:
        return [to_json(_outcome(test, getattr(test, reference), from_json(Trial, one)), indent=None) for one in trials]


def _outcome(test: ModuleType, reference: Any, trial: Trial) -> Outcome:
    case = _case(test, trial)
    try:
        inputs = test.make_inputs(case, "cpu", trial.seed)
        begun = time.perf_counter()
        want = tensors_of(reference(**inputs, **case.parameters))
        seconds = time.perf_counter() - begun
        if not trial.figures and want is not None:
            return Outcome(results=tuple(seen(one) for one in want), seconds=seconds)
        exact = tensors_of(test.exactly(inputs, case.parameters))
        moved = tensors_of(test.exactly(_nudged(inputs, trial.dtype), case.parameters))
    except BaseException as error:  # noqa: BLE001 - the person's code, on sizes that it may not take
        return Outcome(said(error))
    assert want is not None and exact is not None and moved is not None
    if [one.shape for one in want] != [one.shape for one in exact]:
        return Outcome("the shape of its result is another in float64")
    if [one.shape for one in exact] != [one.shape for one in moved]:
        return Outcome("the shape of its result depends on the values")
    floats = [(w, e, m) for w, e, m in zip(want, exact, moved, strict=True) if w.is_floating_point()]
    figures = [_figures(*one, trial.dtype) for one in floats]
    return Outcome(
        results=tuple(seen(one) for one in want),
        finite=all(bool(one.isfinite().all()) for one, _, _ in floats),
        error_abs=max((one for one, _ in figures), default=0.0),
        precision=max((one for _, one in figures), default=1.0),
        seconds=seconds,
    )


def _case(test: ModuleType, trial: Trial) -> Any:
    parameters = {**test.PARAMETERS, **trial.parameters}
    return test.Case(trial.dims, trial.dtype, trial.scale, parameters, False, trial.values)


def _nudged(inputs: Mapping[str, torch.Tensor], dtype: str) -> dict[str, torch.Tensor]:
    """The inputs in float64, each value changed by up to half a unit in the last place of what is computed in, float32
    or float64: by as much as an honest kernel may round it.
    """
    unit = torch.finfo(torch.float64 if dtype == "float64" else torch.float32).eps
    generator = torch.Generator().manual_seed(_SEED)

    def nudge(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        by = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) - 0.5
        return tensor.double() * (1 + unit * by)

    return {name: nudge(tensor) for name, tensor in inputs.items()}


def _figures(want: torch.Tensor, exact: torch.Tensor, moved: torch.Tensor, dtype: str) -> tuple[float, float]:
    """By how much float32 is off beyond the least tolerance; the cost of rounding the inputs in units of its error."""
    finite = exact.isfinite() & want.isfinite() & moved.isfinite()
    if not finite.any():
        return 0.0, 1.0
    right, got, other = exact[finite].double(), want[finite].double(), moved[finite].double()
    unit = right.square().mean().sqrt() * torch.finfo(want.dtype).eps
    own = (got - right).square().mean().sqrt()
    shaken = (other - right).square().mean().sqrt()
    off = (
        torch.maximum((got - right).abs(), (other - right).abs()) - _REL * right.abs()
        if dtype == "float32"
        else (other - right).abs()
    )
    return max(float(off.max()), 0.0), float((shaken / torch.maximum(own, unit)).nan_to_num(nan=1.0))


def built(kept: Kept, sizes: list[dict[str, int]]) -> list[dict[str, list[int]] | None]:
    """The shapes of the object's state where its constructor is given other sizes; None where it refuses them."""
    made: list[dict[str, list[int]] | None] = []
    for each in sizes:
        try:
            one = constructed(type(kept.subject.owner), changed(kept.subject.arguments, each), 1)
        except BaseException:  # noqa: BLE001 - sizes that it may not take
            made.append(None)
            continue
        made.append({name: list(t.shape) for name, t in [*one.named_parameters(), *one.named_buffers()]})
    return made


def agrees(kept: Kept, folder: str, module: str, function: str, reference: str, source: Mapping[str, list[str]]) -> str:
    """Why the op's reference is not the original, on the first example; "" where it is.

    `source` says of each input whether it is an argument or the object's own, and by which name.
    """
    owner = kept.subject.owner
    state = dict([*owner.named_parameters(), *owner.named_buffers()]) if isinstance(owner, torch.nn.Module) else {}
    places = {"argument": kept.example.arguments, "state": state}
    inputs = {name: as_passed(places[kind][key].detach().clone()) for name, (kind, key) in source.items()}
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    try:
        with torch.no_grad(), testfile.loaded(Path(folder), kernel) as test:
            got = tensors_of(getattr(test, reference)(**inputs))
            passed = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in kept.example.arguments.items()}
            want = tensors_of(kept.subject.call(**passed))
    except BaseException as error:  # noqa: BLE001 - the person's code
        return f"the code that was cut out raised {said(error)}, where the original did not"
    assert got is not None and want is not None
    for at, (one, other) in enumerate(zip(got, want, strict=True)):
        if why := unlike(one, other):
            return f"result {at} {why}"
    return ""


def unlike(one: torch.Tensor, other: torch.Tensor) -> str:
    """How a tensor is not the original's; "" where it is."""
    loose = 1e-5 if other.dtype is torch.float32 else 1e-12 if other.dtype is torch.float64 else 3e-2
    if one.shape != other.shape:
        return f"has shape {tuple(one.shape)}, where the original's is {tuple(other.shape)}"
    size = float(other.double().abs().nan_to_num().max()) if other.numel() else 0.0
    if not torch.allclose(one.double(), other.double(), rtol=loose, atol=loose * max(size, 1e-30), equal_nan=True):
        off = float((one.double() - other.double()).abs().max())
        return f"differs from the original's by up to {off:.3g}"
    return ""


def as_passed(tensor: torch.Tensor) -> torch.Tensor:
    """A mask is passed as int32: an op has no inputs of bool."""
    return tensor.to(torch.int32) if tensor.dtype is torch.bool else tensor
