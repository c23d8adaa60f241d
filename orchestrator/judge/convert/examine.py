"""The target called on its examples, and what that shows: tensors, results, what is written to.

Whether it is code of which an op can be made is `unfit`'s to find out, by calling it again.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from orchestrator.judge.convert import unfit
from orchestrator.judge.convert.calling import alike, called, same, state_of, untouched
from orchestrator.judge.convert.seen import drawn, seen
from orchestrator.judge.convert.subject import Asked, Problem, Subject, imported, said, subject
from orchestrator.probed import Called, Examined, Seen, State
from orchestrator.records import Parameter

_MOST_STATE = 16  # tensors of an object; an entry with more arguments is no kernel's
_MOST_PRODUCTS = 12  # matrix products and convolutions in one call, at different lines of code
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution", "_scaled_dot_product", "linear")


@dataclass(frozen=True)
class Example:
    """One call's arguments by name."""

    arguments: dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """What stays in this process for later questions: the subject, and the first example."""

    subject: Subject
    example: Example
    module: ModuleType


def examine(asked: Asked, given: list[Mapping[str, Any]] | None) -> tuple[Examined, Kept]:
    """What the examples show. `given` are arguments with tensors as facts; None: the file's get_inputs() has them.

    Raises Problem.
    """
    module = imported(asked)
    target = subject(module, asked)
    examples = [_made(one, target) for one in given] if given is not None else [_from_file(module, target)]
    calls = tuple(_call(target, example) for example in examples)
    built = target.built and replace(target.built, state=_used(target, examples[0]))
    if built is not None and len(built.state) > _MOST_STATE:
        raise Problem(
            f"{asked.first} has {len(built.state)} parameters and buffers, more than the {_MOST_STATE} that one "
            f"kernel's entry may take: name a part of it, a class or function that it is made of"
        )
    names = tuple(inspect.signature(target.call).parameters)
    instead = (module.__doc__ or "",) if module.__spec__ is None else ()
    return Examined(names, calls, built, instead), Kept(target, examples[0], module)


def _used(target: Subject, example: Example) -> dict[str, State]:
    """The object's own tensors that the call reads: with NaN in one of the others its results are the same."""
    assert target.built is not None
    first, _ = called(target, example.arguments)
    used = {}
    for name, (tensor, kept) in state_of(target).items():
        if name not in target.built.state:
            continue
        if tensor.is_floating_point():
            tensor.detach().fill_(torch.nan)
        results, _ = called(target, example.arguments)
        tensor.detach().copy_(kept)
        if not (tensor.is_floating_point() and alike(first, results)):
            used[name] = target.built.state[name]
    return used


def _from_file(module: ModuleType, target: Subject) -> Example:
    if not hasattr(module, "get_inputs"):
        raise Problem(
            "nothing says what it is called with: give --example shapes.yaml, write a get_inputs() into the file, or "
            'name a script that calls it, --trace "python run.py"'
        )
    torch.manual_seed(0)
    try:
        values = module.get_inputs()
    except BaseException as error:  # noqa: BLE001 - the person's function
        raise Problem(f"get_inputs() of the file raised {said(error)}") from error
    if isinstance(values, torch.Tensor):
        values = [values]
    if not isinstance(values, list | tuple | Mapping):
        raise Problem(
            f"get_inputs() of the file returns {type(values).__name__}: return the arguments of one call as a list, or "
            f"by name as a mapping"
        )
    positional, named = ([], dict(values)) if isinstance(values, Mapping) else (list(values), {})
    return _bound(target, positional, named)


def _made(given: Mapping[str, Any], target: Subject) -> Example:
    generator = torch.Generator().manual_seed(0)
    try:
        tensors = {name: drawn(Seen(**fact), generator) for name, fact in given["tensors"].items()}
    except (RuntimeError, MemoryError) as error:
        raise Problem(f"the example's tensors cannot be made here: {said(error)}; give a smaller example") from error
    return _bound(target, [], {**tensors, **given["others"]})


def _bound(target: Subject, positional: list[Any], named: Mapping[str, Any]) -> Example:
    """The arguments by name. Raises Problem for what an entry cannot take."""
    signature = inspect.signature(target.call)
    kinds = {one.kind for one in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise Problem(f"it takes {signature}: a kernel's entry has named arguments only; convert a function that does")
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        raise Problem(f"the example does not fit {signature}: {error}") from error
    bound.apply_defaults()
    arguments = {name: _on_the_cpu(value) for name, value in bound.arguments.items()}
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor | bool | int | float | str | None):
            raise Problem(
                f"the argument {name} is a {type(value).__name__}: only tensors, numbers, text and None can be passed "
                f"to a kernel; convert a function that takes its tensors one by one"
            )
    return Example(arguments)


def _on_the_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _call(target: Subject, example: Example) -> Called:
    """One example. Raises Problem."""
    before, pristine = _tensors(example.arguments), untouched(target)
    with _counted() as products:
        first, arguments = called(target, example.arguments)
    if len(products) > _MOST_PRODUCTS:
        raise Problem(
            f"a call makes {len(products)} matrix products and convolutions at different places in the code; no single "
            f"kernel should hold so many: name a part of it"
        )
    if not any(one.numel() for one in first):
        raise Problem("its results have no elements on the example: give one that comes to something")
    changed = tuple(name for name, tensor in before.items() if not same(tensor, arguments[name]))
    unfit.refuse(target, pristine, example.arguments, first)
    others: dict[str, Parameter | None] = {
        name: value for name, value in example.arguments.items() if not isinstance(value, torch.Tensor)
    }
    returned = {name: at for name in changed for at, one in enumerate(first) if one is arguments[name]}
    if lost := [name for name in changed if name not in returned]:
        raise Problem(
            f"it writes into {', '.join(lost)} and does not return it: return what was written, as the same tensor, or "
            f"compute into a new one"
        )
    facts = {name: seen(tensor) for name, tensor in before.items()}
    return Called(facts, others, tuple(seen(one) for one in first), len(products), returned)


def _tensors(arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: copy.copy(value) for name, value in arguments.items() if isinstance(value, torch.Tensor)}


class _Products(TorchDispatchMode):  # type: ignore[misc]
    """Counts matrix products and convolutions by the line of code that asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name.startswith(_PRODUCTS):
            self.found[_asking()] += 1
        return func(*args, **(kwargs or {}))


def _asking() -> str:
    """The innermost lines that are not torch's; each layer of a model is another place."""
    frames = [f for f in inspect.stack(0)[2:] if "/torch/" not in f.filename and "judge/convert" not in f.filename]
    return " ".join(f"{frame.filename}:{frame.lineno}" for frame in frames[:4])


@contextlib.contextmanager
def _counted() -> Iterator[Counter[str]]:
    with _Products() as mode:
        yield mode.found
