"""The target called once: its results, and what the call left of its arguments and of its object."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import MethodType
from typing import Any

import torch

from orchestrator.judge.convert.seen import tensors_of
from orchestrator.judge.convert.subject import Problem, Subject, said

Results = tuple[torch.Tensor, ...]


def called(target: Subject, arguments: Mapping[str, Any]) -> tuple[Results, dict[str, Any]]:
    """The tensors of one call's result, and the arguments as the call left them. Raises Problem."""
    passed = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}
    state = state_of(target)
    try:
        with torch.no_grad():
            result = target.call(**passed)
    except BaseException as error:  # noqa: BLE001 - the person's code
        raise Problem(f"the call on the example raised {said(error)}") from error
    after = {name: tensor for name, (tensor, _) in state_of(target).items()}
    if written := [name for name, (tensor, kept) in state.items() if _written(kept, tensor, after.get(name))]:
        raise Problem(
            f"a call writes into its own {', '.join(written)}: a kernel keeps nothing between calls; pass it as an "
            f"argument and return the new one, or convert the part that only computes"
        )
    found = tensors_of(result)
    if found is None:
        raise Problem(f"it returns {type(result).__name__}; a kernel returns a tensor, or a tuple of tensors")
    if wrong := [str(one.dtype) for one in found if one.dtype is torch.bool or one.is_complex() or one.is_sparse]:
        raise Problem(f"it returns a tensor of {wrong[0]}; results can be floats and int8, int32 or int64")
    return found, passed


def _written(kept: torch.Tensor, tensor: torch.Tensor, after: torch.Tensor | None) -> bool:
    """Whether a tensor of the object's has other values, or another tensor is in its place. One of another size is not
    meant: what an object computes ahead, and makes larger when it must, is no memory of its inputs.
    """
    replaced = after is not None and after.shape == kept.shape and not same(kept, after)
    return replaced or not same(kept, tensor)


def state_of(target: Subject) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The object's own tensors by name, each with a copy of what it is now."""
    owner = target.owner
    if isinstance(owner, torch.nn.Module):
        named = dict([*owner.named_parameters(), *owner.named_buffers()])
    else:
        named = (
            {name: value for name, value in vars(owner).items() if isinstance(value, torch.Tensor)}
            if hasattr(owner, "__dict__")
            else {}
        )
    return {name: (tensor, tensor.detach().clone()) for name, tensor in named.items()}


def untouched(target: Subject) -> Subject:
    """The target with an object of its own, as it is now; itself where there is none, or none that can be copied."""
    if not inspect.ismethod(target.call) and target.call is not target.owner:
        return target
    try:
        owner = copy.deepcopy(target.owner)
    except Exception:  # noqa: BLE001 - the person's object
        return target
    call = MethodType(target.call.__func__, owner) if inspect.ismethod(target.call) else owner
    return replace(target, owner=owner, call=call)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all values are the same; a NaN is one."""
    return one.shape == other.shape and bool(((one == other) | (one != one) & (other != other)).all())


def alike(one: Results, other: Results) -> bool:
    """Whether two calls gave the same results."""
    return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
