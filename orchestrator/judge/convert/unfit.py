"""What shows that code is no function of its arguments' values with shapes that follow from their shapes.

Found by calling it again: on the same values, with what is drawn at random drawn anew, on other values of the same
kind and on ones of which many are equal; on an object that was called before and on one that was not. A dependence that
shows on none of these is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from orchestrator.judge.convert.calling import Results, alike, called
from orchestrator.judge.convert.seen import drawn, seen
from orchestrator.judge.convert.subject import Problem, Subject

_RANDOM = (
    "it is random (a dropout that is told training=True, say), and an element that is random cannot be compared; take "
    "the randomness out, or pass what was drawn as an argument"
)
_KEEPS = (
    "what it returns depends on the calls before: a kernel keeps nothing between calls; pass what it keeps as an "
    "argument, or convert the part that only computes"
)


def refuse(target: Subject, before: Subject, arguments: Mapping[str, Any], first: Results) -> None:
    """Raises Problem. `before` is the target as it was before its first call, of which `first` are the results."""
    again, _ = called(target, arguments)
    if not alike(first, again):
        memory = before is not target and alike(first, called(before, arguments)[0])
        raise Problem(_KEEPS if memory else f"two calls on the same inputs differ: {_RANDOM}")
    with _DrawnAnew():
        anew, _ = called(target, arguments)
    if not alike(first, anew):
        raise Problem(f"it draws random numbers, from a seed that it sets itself: {_RANDOM}")
    for other in _others(arguments):
        _refuse_dependence(target, before, other, first)


def _refuse_dependence(target: Subject, before: Subject, other: Mapping[str, Any], first: Results) -> None:
    try:
        results, _ = called(target, other)
        unaffected, _ = called(before, other)
    except Problem:
        return  # values of which nothing is known but their range need not be ones that it takes
    if [one.shape for one in first] != [one.shape for one in results]:
        was, now = (tuple(tuple(one.shape) for one in several) for several in (first, results))
        raise Problem(
            f"the shape of its result depends on the values ({was[0]}, then {now[0]}): "
            f"a kernel's results have shapes that follow from its inputs' shapes; return a mask or padded results"
        )
    if not alike(results, unaffected):
        raise Problem(_KEEPS)


def _others(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments with other values of the same kind, and with values of which many are equal, 0 among them."""
    generator = torch.Generator().manual_seed(7)
    other = {n: drawn(seen(v), generator) if isinstance(v, torch.Tensor) else v for n, v in arguments.items()}
    yield other
    yield {name: _equal(one) if isinstance(one, torch.Tensor) else one for name, one in other.items()}


def _equal(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor.clone().fill_(tensor.min()) if tensor.numel() else tensor
    places = torch.arange(tensor.numel()).reshape(tensor.shape)
    return tensor.round() * (places % 2)


class _DrawnAnew(TorchDispatchMode):  # type: ignore[misc]
    """Each draw of random numbers is made twice, and the second counts: another one also where a seed was set."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))
