"""Reductions and scans in Triton's interpreter, in the order and in the time that they should take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from orchestrator.judge.interpreter.bfloat16 import is_half

Array = np.ndarray[Any, Any]


def sums() -> None:
    """Fault (3.5 to 3.7): a bfloat16 sum adds bits, and numpy adds a new dtype's elements one after the other, which
    loses what a tree keeps. Half types are summed in a tree, each step rounded, as the compiler does."""
    other_kinds = interpreter.ReduceOps.sum

    def sum_of_halves(self: Any, input: Any) -> Any:
        data = input.handle.data
        if not is_half(data.dtype):
            return other_kinds(self, input)
        axis = 0 if self.axis is None else self.axis
        total = _tree(np.moveaxis(data if self.axis is not None else data.reshape(-1), axis, 0))
        if self.keep_dims:
            total = np.expand_dims(total, axis) if self.axis is not None else total.reshape((1,) * data.ndim)
        return self.to_tensor(total if total.ndim else total[()], input.dtype)

    interpreter.ReduceOps.sum = sum_of_halves


def _tree(data: Array) -> Array:
    """The sum over the first axis, whose length is a power of two."""
    while len(data) > 1:
        half = len(data) // 2
        data = np.concatenate([data[:half] + data[half : 2 * half], data[2 * half :]])
    return np.asarray(data[0])


def combine_blocks() -> None:
    """Fault (3.5 to 3.7): a reduction or scan by a function of the kernel's own calls it for every element, seconds for
    a row of a few thousand. It is called for whole blocks: for a reduction on halves until one element is left, for a
    scan at distances of 1, 2, 4 and so on, which is as right, since such a function must be associative."""
    one_by_one = {"reduce": interpreter.ReduceOps.generic_reduce, "scan": interpreter.ScanOps.generic_scan}

    def generic_reduce(self: Any, input: Any) -> Any:
        flat = self.axis is None
        axis = 0 if flat else self.axis
        rank = len(input[0].handle.data.shape)
        arrays = [_first(each, self.axis) for each in input]
        if len(arrays[0]) & (len(arrays[0]) - 1):
            return one_by_one["reduce"](self, input)
        while len(arrays[0]) > 1:
            half = len(arrays[0]) // 2
            arrays = _combined(self, input, [a[:half] for a in arrays], [a[half:] for a in arrays])
        results = [array[0] for array in arrays]
        if self.keep_dims:
            results = [r.reshape((1,) * rank) if flat else np.expand_dims(r, axis) for r in results]
        return [self.to_tensor(r if np.ndim(r) else r[()], each.dtype) for r, each in zip(results, input, strict=True)]

    def generic_scan(self: Any, input: Any) -> Any:
        arrays = [_first(each, self.axis) for each in input]
        for step in range(math.ceil(math.log2(max(1, len(arrays[0]))))):
            distance = 1 << step
            earlier = [
                np.concatenate([a[:distance], a[:-distance]]) for a in arrays
            ]  # blocks have sizes of powers of 2
            both = _combined(self, input, earlier, arrays)
            arrays = [np.concatenate([a[:distance], b[distance:]]) for a, b in zip(arrays, both, strict=True)]
        moved = [np.moveaxis(array, 0, self.axis) for array in arrays]
        return [self.to_tensor(array, each.dtype) for array, each in zip(moved, input, strict=True)]

    interpreter.ReduceOps.generic_reduce = generic_reduce
    interpreter.ScanOps.generic_scan = generic_scan


def _first(tensor: Any, axis: int | None) -> Array:
    """The data with that axis in front; all of it in a row without an axis."""
    data = tensor.handle.data
    return data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0)


def _combined(operation: Any, input: Sequence[Any], left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    """The kernel's function on two lists of blocks."""
    arguments = [
        operation.to_tensor(np.ascontiguousarray(array), each.dtype)
        for side in (left, right)
        for array, each in zip(side, input, strict=True)
    ]
    results = operation.combine_fn(*arguments)
    results = results if isinstance(results, tuple | tl.tuple) else (results,)
    return [
        np.broadcast_to(_data(result, array.dtype), array.shape) for result, array in zip(results, left, strict=True)
    ]


def _data(result: Any, dtype: Any) -> Array:
    return np.asarray(result.handle.data if isinstance(result, tl.tensor) else result, dtype)
