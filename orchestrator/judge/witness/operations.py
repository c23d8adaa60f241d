"""Which torch operations the host code of a kernel file dispatched.

Owns the list of what honest host code needs (counted over public kernel libraries): allocations, constant fills and
views say nothing; casts, copies and host reads are told apart as grey; everything else is computing on the host. Both
are listed with their lines, for the op to decide. The candidate's allocations are handed to `allocator` on the way.

Catches computing wherever it hides in host code: an argument of a launch, a grid, a pre_hook, a property, `__exit__`,
a custom op, a tensor subclass. Cannot see: threads the candidate starts (`state` reports those), what runs with
dispatch modes taken off the stack on purpose, libraries that compute without torch, and what runs at import.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode

from orchestrator.judge.memory import device_of
from orchestrator.judge.witness.allocator import ALLOCATIONS, Allocator
from orchestrator.judge.witness.origin import Origin, Origins

MOST_LISTED = 64
_NAME = 120  # characters

_VIEWS = """
    alias.default as_strided.default detach.default diagonal.default expand.default narrow.default permute.default
    select.int slice.Tensor split.Tensor split.sizes split_with_sizes.default squeeze.default squeeze.dim squeeze.dims
    t.default transpose.int unbind.int unfold.default unsqueeze.default view.default view.dtype view_as.default
    _unsafe_view.default _reshape_alias.default view_as_real.default view_as_complex.default lift_fresh.default
    is_same_size.default
"""
_OTHERS = "fill_.Scalar zero_.default promote_types.default result_type.Tensor result_type.Scalar can_cast.default"
ALLOWED = frozenset(f"aten.{name}" for name in (_VIEWS + _OTHERS).split()) | ALLOCATIONS

_GREY = "_to_copy.default copy_.default _local_scalar_dense.default arange.default arange.start arange.start_step"
GREY = frozenset(f"aten.{name}" for name in _GREY.split())

# What Triton's own files dispatch: arguments of the interpreter, the autotuner's resets, its benchmark's cache.
_TRITONS = (
    "_to_copy.default copy_.default clone.default zero_.default set_.source_Storage set_.source_Storage_storage_offset"
)
TRITONS_OWN = frozenset(f"aten.{name}" for name in _TRITONS.split()) | ALLOWED

_PLAIN, _ALLOCATION, _OWN, _SUSPECT = range(4)
_CLONE, _CAST = "aten.clone.default", "aten._to_copy.default"


class Operations(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed by the type checker
    """The dispatch mode around one call."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch would import its whole compiler at the first operation

    def __init__(self, origins: Origins, allocator: Allocator) -> None:
        super().__init__()
        self._origins = origins
        self._allocator = allocator
        self._kinds: dict[object, int] = {}
        self._registered = frozenset(_custom_ops())
        self._found: dict[tuple[str, int], bool] = {}

    def clear(self) -> None:
        """Forget what was found: another call begins."""
        self._found = {}

    def leave(self, depth: int) -> list[str]:
        """Take this mode off the stack, and whatever the call left above it; says so when the stack is not in order."""
        stack = [torch._C._get_dispatch_stack_at(place) for place in range(torch._C._len_torch_dispatch_stack())]
        in_order = len(stack) == depth + 1 and stack[-1] is self
        if self in stack:
            while torch._C._get_dispatch_stack_at(torch._C._len_torch_dispatch_stack() - 1) is not self:
                _pop_mode()
            self.__exit__(None, None, None)
        return [] if in_order else ["the call left a dispatch mode behind, or took one away"]

    def found(self) -> list[dict[str, object]]:
        """What was dispatched, each operation once per line."""
        return [
            {"name": name, "line": line, "text": self._origins.text(line)} | ({"grey": True} if grey else {})
            for (name, line), grey in self._found.items()
        ]

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = self._classify(func)
        if kind != _PLAIN:
            origin = self._origins.of(sys._getframe(1))
            if kind == _SUSPECT:
                self._note(func, origin, args, kwargs)
        if any(kind is not torch.Tensor for kind in types):  # a subclass decides; what it does comes here again
            return NotImplemented
        if kind == _ALLOCATION and origin.candidate:
            return self._allocator.serve(func, args, kwargs, origin.line)
        return self._enter(func, args, kwargs) if kind == _OWN else func(*args, **kwargs)

    def _classify(self, func: Any) -> int:
        name = str(func)
        if name in ALLOCATIONS:
            return _ALLOCATION
        if name in ALLOWED:
            return _PLAIN
        own = _qualified(func) in set(_custom_ops()) - self._registered
        return _OWN if own else _SUSPECT

    def _note(self, func: Any, origin: Origin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = str(func)
        if (not origin.candidate and name in TRITONS_OWN) or len(self._found) >= MOST_LISTED:
            return
        if (name == _CLONE and _changes_layout(args, kwargs)) or (name == _CAST and _comes_in(args, kwargs)):
            return
        self._found.setdefault((name[:_NAME], origin.line), name in GREY or name == _CLONE)

    def _enter(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A custom operator that the kernel file defined: run its body under this mode."""
        key = "CUDA" if any(isinstance(arg, torch.Tensor) and device_of(arg).type == "cuda" for arg in args) else "CPU"
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
        with self:
            return func.redispatch(keys, *args, **kwargs)


def _custom_ops() -> list[str]:
    from torch._library.custom_ops import OPDEFS

    return list(OPDEFS)


def _qualified(func: Any) -> str:
    with suppress(AttributeError):
        return str(func._schema.name)
    return ""


def _comes_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Numbers that torch.tensor() brings to the GPU."""
    source, to = args[0] if args else None, kwargs.get("device")
    return isinstance(source, torch.Tensor) and source.device.type == "cpu" and to is not None and to.type != "cpu"


def _changes_layout(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """A clone that makes a strided tensor contiguous, as .contiguous() and .reshape() do."""
    source = args[0] if args else None
    wanted = kwargs.get("memory_format")
    if not isinstance(source, torch.Tensor) or wanted in (None, torch.preserve_format):
        return False
    return not source.is_contiguous(memory_format=wanted)
