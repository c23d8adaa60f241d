"""Gradients of a person's code: which there are, and whether an autograd.py to be gives them.

There is no kernel yet: in the place of each stands its reference. What this shows is that the module hands gradients
on as it should, and that the references are right; what a kernel does is the judge's to say.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError, gradcheck

from orchestrator.judge import testfile
from orchestrator.judge.convert.examine import Kept
from orchestrator.judge.convert.seen import tensors_of
from orchestrator.judge.convert.subject import said
from orchestrator.judge.convert.trials import as_passed, unlike
from orchestrator.probed import Differentiated, Trial
from orchestrator.records import from_json

Source = Mapping[str, Sequence[str]]
_BACKEND = "aot_eager"  # of torch.compile: as it traces and differentiates, without a compiler of C
_EACH = 256  # elements of inputs up to which every derivative is taken by itself


def differentiated(
    kept: Kept, folder: str, module: str, function: str, reference: str, source: Source, results: list[str]
) -> Differentiated:
    """The results and inputs that autograd goes through on the first example, in the original and in what was cut."""
    try:
        want, original = _of_the_original(kept, source)
        with _references(folder, module, function) as (_, ref):
            inputs = _example(kept, source)
            got, cut = _through(lambda: getattr(ref, reference)(**inputs), inputs)
    except BaseException as error:  # noqa: BLE001 - the person's code
        return Differentiated(problem=f"its gradient cannot be taken: it raised {said(error)}")
    found = tuple(name for name, one in zip(results, want, strict=True) if one.requires_grad)
    if not found:
        why = "its results are integers" if not any(one.is_floating_point() for one in want) else "it is detached"
        return Differentiated(problem=f"no result of it has a gradient: {why}; convert it without --backward")
    names = tuple(name for name, one in original.items() if one is not None)
    if [one.requires_grad for one in got] != [one.requires_grad for one in want] or names != tuple(
        name for name, one in cut.items() if one is not None
    ):
        return Differentiated(problem="the code that was cut out has other gradients than the original")
    return Differentiated(found, names)


def differs(
    kept: Kept,
    folder: str,
    module: str,
    function: str,
    reference: str,
    source: Source,
    name: str,
    text: str,
    trial: str,
) -> str:
    """Why the gradients of an autograd.py are not the original's on the example, or, where there is a trial to check it
    on, not those of its values; "" where they are.
    """
    try:
        with _references(folder, module, function) as (test, ref), _in_the_kernels_place(ref, name, reference):
            entry = _entry(text, name)
            inputs = _example(kept, source)
            _, got = _through(lambda: entry(**inputs), inputs)
            _, want = _of_the_original(kept, source)
            return _apart(got, want) or (_by_differences(entry, test, from_json(Trial, trial), got) if trial else "")
    except BaseException as error:  # noqa: BLE001 - the person's code
        return f"its gradient cannot be taken: {said(error)}"


@contextlib.contextmanager
def _references(folder: str, module: str, function: str) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The op's test file and its ref.py."""
    kernel = ModuleType(module)
    setattr(kernel, function, None)
    with testfile.loaded(Path(folder), kernel) as test:
        yield test, sys.modules["ref"]


@contextlib.contextmanager
def _in_the_kernels_place(ref: ModuleType, name: str, reference: str) -> Iterator[None]:
    """The exported packages that an autograd.py imports, made of references."""
    made: dict[str, ModuleType] = {}
    for op in dict.fromkeys((name, reference.removesuffix("_ref"))):
        package = ModuleType(f"{op}_kernel")
        setattr(package, op, getattr(ref, f"{op}_ref"))
        made |= {package.__name__: package, f"{package.__name__}.ref": ref}
    before = {key: sys.modules.get(key) for key in made}
    sys.modules.update(made)
    try:
        yield
    finally:
        for key, one in before.items():
            sys.modules.pop(key)
            if one is not None:
                sys.modules[key] = one


def _entry(text: str, name: str) -> Callable[..., Any]:
    module = ModuleType("autograd")
    exec(compile(text, "autograd.py", "exec"), vars(module))
    if hasattr(module, "BACKEND"):
        setattr(module, "BACKEND", _BACKEND)  # noqa: B010 - a name that only this module may have
    entry: Callable[..., Any] = getattr(module, name)
    return entry


def _example(kept: Kept, source: Source) -> dict[str, torch.Tensor]:
    """The entry's tensors in the first example, gradients asked of all that hold floats."""
    owner = kept.subject.owner
    state = dict([*owner.named_parameters(), *owner.named_buffers()]) if isinstance(owner, torch.nn.Module) else {}
    places = {"argument": kept.example.arguments, "state": state}
    inputs = {name: as_passed(places[kind][key].detach().clone()) for name, (kind, key) in source.items()}
    return {name: one.requires_grad_(one.is_floating_point()) for name, one in inputs.items()}


def _of_the_original(kept: Kept, source: Source) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor | None]]:
    """Results and gradients of the original itself, by the entry's names."""
    owner, arguments = kept.subject.owner, kept.example.arguments
    passed = {n: v.detach().clone() if isinstance(v, torch.Tensor) else v for n, v in arguments.items()}
    state = dict([*owner.named_parameters(), *owner.named_buffers()]) if isinstance(owner, torch.nn.Module) else {}
    places = {"argument": passed, "state": state}
    tensors = {name: places[kind][key] for name, (kind, key) in source.items()}
    floats = [one for one in tensors.values() if one.is_floating_point()]
    before = [one.requires_grad for one in floats]
    try:
        for one in floats:
            one.requires_grad_()
        return _through(lambda: kept.subject.call(**passed), tensors)
    finally:
        for one, was in zip(floats, before, strict=True):
            one.requires_grad_(was)


def _through(
    call: Callable[[], Any], tensors: Mapping[str, torch.Tensor]
) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor | None]]:
    """The results of a call, and the gradient by each tensor of floats, of results that are weighed unevenly."""
    with torch.enable_grad():
        results = tensors_of(call())
    assert results is not None
    generator = torch.Generator().manual_seed(0)
    ends = [one for one in results if one.requires_grad]
    weights = [torch.randn(one.shape, generator=generator).to(one.dtype) for one in ends]
    wanted = {name: one for name, one in tensors.items() if one.requires_grad}
    if not ends or not wanted:
        return results, {}
    return results, dict(
        zip(wanted, torch.autograd.grad(ends, list(wanted.values()), weights, allow_unused=True), strict=True)
    )


def _apart(got: Mapping[str, torch.Tensor | None], want: Mapping[str, torch.Tensor | None]) -> str:
    for name, right in want.items():
        one = got.get(name)
        if (one is None) != (right is None):
            return f"there is {'no' if one is None else 'a'} gradient by {name}, other than of the original"
        if one is not None and right is not None and (why := unlike(one, right)):
            return f"the gradient by {name} {why}"
    return ""


def _by_differences(
    entry: Callable[..., Any], test: ModuleType, trial: Trial, gradients: Mapping[str, torch.Tensor | None]
) -> str:
    """Why finite differences in float64 say otherwise; "" where they agree."""
    case = test.Case(trial.dims, trial.dtype, trial.scale)
    takes = inspect.signature(entry).parameters
    inputs = {name: one for name, one in test.make_inputs(case, "cpu", trial.seed).items() if name in takes}
    free = [name for name, one in gradients.items() if one is not None]
    tensors = [inputs[name].double().requires_grad_() for name in free]

    def call(*given: torch.Tensor) -> Any:
        results = tensors_of(entry(**{**inputs, **dict(zip(free, given, strict=True))}))
        return tuple(one for one in results or () if one.is_floating_point())

    try:
        gradcheck(call, tensors, fast_mode=sum(one.numel() for one in tensors) > _EACH)
    except GradcheckError:
        return (
            "finite differences give another gradient than autograd (torch.autograd.gradcheck): it detaches, rounds, "
            "or has a backward of its own; --backward checkpoint takes what autograd gives"
        )
    return ""
