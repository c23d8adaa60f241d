"""Where kernels load from beside inputs and allocations, in Triton's interpreter.

Owns the one place that every load of an interpreted kernel passes: the builder's masked load, given each lane's
address and mask. An address in a zone, the bytes next to an input or to an allocation of the candidate's that are
nobody's, is noted.

Catches a load outside whose value is masked away, which no result shows. Cannot see: loads on a GPU, loads further out
than the zones, and those beside memory that came from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import torch
from triton.runtime import interpreter

from orchestrator.judge.witness.allocator import Allocator

_BESIDE = 64 << 10  # bytes on either side of an input; the judge keeps more of them free
_MOST_LISTED = 16


class Loads:
    """A context around one call."""

    def __init__(self, allocator: Allocator, inputs: Mapping[str, torch.Tensor]) -> None:
        self._allocator = allocator
        self._inputs = inputs
        self._found: dict[str, int] = {}
        self._usual: Any = None

    def __enter__(self) -> None:
        self._usual = usual = interpreter.InterpreterBuilder.create_masked_load

        def watched(builder: Any, ptrs: Any, mask: Any, *rest: Any, **how: Any) -> Any:
            asked = numpy.asarray(mask.data).astype(bool)  # of two conditions integers, which would be taken for places
            self._look(ptrs.data[numpy.broadcast_to(asked, ptrs.data.shape)])
            return usual(builder, ptrs, mask, *rest, **how)

        interpreter.InterpreterBuilder.create_masked_load = watched

    def __exit__(self, *exc: object) -> None:
        interpreter.InterpreterBuilder.create_masked_load = self._usual

    def found(self) -> list[dict[str, object]]:
        """Beside which tensors elements were loaded, and how many."""
        return [{"where": where, "elements": count} for where, count in self._found.items()][:_MOST_LISTED]

    def _look(self, addresses: Any) -> None:
        if not addresses.size:
            return
        low, high = int(addresses.min()), int(addresses.max())
        for where, first, end in (*self._beside_inputs(), *self._allocator.beside()):
            if low < end and high >= first and (count := int(((addresses >= first) & (addresses < end)).sum())):
                self._found[where] = self._found.get(where, 0) + count

    def _beside_inputs(self) -> list[tuple[str, int, int]]:
        found = []
        for name, tensor in self._inputs.items():
            if tensor.numel():
                span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
                first, end = tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size()
                found.append((f"before input {name}", first - _BESIDE, first))
                found.append((f"behind input {name}", end, end + _BESIDE))
        return found
