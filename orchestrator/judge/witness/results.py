"""What the results of a call share their memory with, and attributes set on them.

Owns a bounded number of earlier results, kept alive so that the allocator cannot rightly hand their memory out again:
a later result in the same storage is then a buffer that the candidate uses again. Catches a view of an input, one
output buffer for every call, and methods shadowed on a plain tensor. Cannot see: a reused buffer whose copy is
returned, and earlier results beyond what is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

_MOST_RESULTS = 16
_MOST_KEPT = 4
_MOST_KEPT_BYTES = 256 << 20
_MOST_ATTRIBUTES = 16
_NAME = 80  # characters


class _Extent(NamedTuple):
    device: str
    start: int
    end: int

    def meets(self, other: _Extent) -> bool:
        return self.device == other.device and self.start < other.end and other.start < self.end


class Results:
    """Looks at the results of one call after the other."""

    def __init__(self) -> None:
        self._kept: deque[tuple[_Extent, Any]] = deque()

    def look(self, inputs: Mapping[str, torch.Tensor], results: Sequence[object]) -> list[dict[str, object]]:
        """For each result the input it shares storage with, whether with an earlier result, and its attributes."""
        given = {name: extent for name, tensor in inputs.items() if (extent := _extent(tensor)) is not None}
        shown = results[:_MOST_RESULTS]
        found = [self._one(given, result) for result in shown]
        for result in shown:
            self._keep(given, result)
        return found

    def _one(self, given: Mapping[str, _Extent], result: object) -> dict[str, object]:
        extent = _extent(result)
        aliases, earlier = "", False
        if extent is not None:
            aliases = next((name for name, one in given.items() if one.meets(extent)), "")
            earlier = not aliases and any(kept.meets(extent) for kept, _ in self._kept)
        return {"aliases": aliases, "earlier": earlier, "attributes": _attributes(result)}

    def _keep(self, given: Mapping[str, _Extent], result: object) -> None:
        """Not what lies in the inputs: their memory is the judge's, and used again for the next call."""
        extent = _extent(result)
        if extent is None or extent.end - extent.start > _MOST_KEPT_BYTES or any(map(extent.meets, given.values())):
            return
        self._kept.append((extent, result))
        while len(self._kept) > _MOST_KEPT or self._bytes() > _MOST_KEPT_BYTES:
            self._kept.popleft()

    def _bytes(self) -> int:
        return sum(extent.end - extent.start for extent, _ in self._kept)


def _extent(tensor: object) -> _Extent | None:
    """Where a tensor's storage lies; None for what has none, or no bytes."""
    if not isinstance(tensor, torch.Tensor):
        return None
    try:
        with torch._C.DisableTorchFunctionSubclass():
            storage = tensor.untyped_storage()
            start, nbytes = storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError):
        return None
    return _Extent(str(tensor.device), start, start + nbytes) if nbytes else None


def _attributes(result: object) -> list[str]:
    if not isinstance(result, torch.Tensor):
        return []
    set_ = object.__getattribute__(result, "__dict__")
    return sorted(str(name)[:_NAME] for name in set_)[:_MOST_ATTRIBUTES]
