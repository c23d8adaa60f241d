"""Makes bfloat16 a number in Triton's interpreter.

numpy has no bfloat16, so the interpreter keeps its bits in uint16: arithmetic, comparisons, products and atomics then
work on the bits, and a float32 is cut where it should be rounded to nearest even. ml_dtypes gives numpy a bfloat16
whose arithmetic is done in float32 and rounded once, which is what torch and a GPU do. Memory is still read and
written as uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BITS = np.dtype(np.uint16)
_NATIVE = (tl.bfloat16, tl.float16, tl.float32, tl.float64)
_EIGHT_BITS = {  # kept as bits in uint8; what is beyond the largest number becomes that number, as on a GPU
    tl.float8e5: (np.dtype(ml_dtypes.float8_e5m2), 57344.0),
    tl.float8e4nv: (np.dtype(ml_dtypes.float8_e4m3fn), 448.0),
    tl.float8e4b8: (np.dtype(ml_dtypes.float8_e4m3fnuz), 240.0),
    tl.float8e5b16: (np.dtype(ml_dtypes.float8_e5m2fnuz), 57344.0),
}

Array = np.ndarray[Any, Any]


def map_dtype() -> None:
    """Fault (3.5 to 3.7): `_get_np_dtype` says uint16 for bfloat16. It says ml_dtypes' bfloat16 instead."""
    original = interpreter._get_np_dtype

    def np_dtype(dtype: Any) -> Any:
        element = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
        return BFLOAT16 if element == tl.bfloat16 else original(dtype)

    interpreter._get_np_dtype = np_dtype


def access_memory() -> None:
    """Follows from `map_dtype`: the extension behind load and store knows numpy's own dtypes only. Views go there."""
    builder = interpreter.InterpreterBuilder
    store = builder.create_masked_store

    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *modifiers: Any, **named: Any) -> Any:
        dtype = ptrs.get_element_ty()
        np_dtype = interpreter._get_np_dtype(dtype)
        data = np.zeros(ptrs.data.shape, np_dtype) if other is None else other.data
        loaded = interpreter._interpreter.load(ptrs.data, mask.data, _bits(data), _bits_dtype(np_dtype))
        return interpreter.TensorHandle(loaded.view(np_dtype), dtype)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *modifiers: Any) -> Any:
        if value.data.dtype == BFLOAT16:
            value = interpreter.TensorHandle(_bits(value.data), tl.uint16)
        return store(self, ptrs, value, mask, *modifiers)

    builder.create_masked_load = create_masked_load
    builder.create_masked_store = create_masked_store


def cast() -> None:
    """Fault (3.5 to 3.7): float32 to bfloat16 is cut; any cast between the two, or with a rounding mode, goes through
    `_convert_float`, which rounds halves up and loses the carry into the exponent. Casts between the floats that numpy
    now knows are numpy's, to nearest even, those to 8 bits too, and `rtz` takes the neighbour towards zero."""
    builder = interpreter.InterpreterBuilder
    other_kinds = builder.create_fp_to_fp

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        return interpreter.TensorHandle(src.data.astype(interpreter._get_np_dtype(dst_type)), dst_type.scalar)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        to_zero = rounding == interpreter._ir.ROUNDING_MODE.RTZ
        if src.dtype.scalar in _NATIVE and dst_type.scalar in _EIGHT_BITS and not to_zero:
            return interpreter.TensorHandle(_in_eight_bits(src.data, *_EIGHT_BITS[dst_type.scalar]), dst_type.scalar)
        if src.dtype.scalar not in _NATIVE or dst_type.scalar not in _NATIVE:
            return other_kinds(self, src, dst_type, rounding)
        data = _rounded(src.data, interpreter._get_np_dtype(dst_type), to_zero)
        return interpreter.TensorHandle(data, dst_type.scalar)

    builder.cast_impl = cast_impl
    builder.create_fp_to_fp = create_fp_to_fp


def constants() -> None:
    """Fault (3.5 to 3.7): a bfloat16 constant other than zero is asked of `get_bf16`, which the builder lacks."""

    def get_bf16(self: Any, value: float) -> Any:
        return interpreter.TensorHandle(np.array([value], dtype=BFLOAT16), tl.bfloat16)

    interpreter.InterpreterBuilder.get_bf16 = get_bf16


def multiply_add() -> None:
    """Fault (3.5 to 3.7): `dot` asks numpy to multiply in the accumulator's dtype and `fma` rounds twice. A half type
    is multiplied in float32 and rounded once, at the end; an `fma` is computed one size wider."""
    builder = interpreter.InterpreterBuilder
    other_kinds = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *how: Any) -> Any:
        if not all(is_half(each.data.dtype) for each in (a, b)):
            return other_kinds(self, a, b, d, *how)
        product = np.matmul(a.data.astype(np.float32), b.data.astype(np.float32))
        total = product + d.data.astype(np.float32)
        return interpreter.TensorHandle(total.astype(d.data.dtype), d.dtype.scalar)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        wide = np.float64 if z.data.dtype.itemsize >= 4 else np.float32
        total = x.data.astype(wide) * y.data.astype(wide) + z.data.astype(wide)
        return interpreter.TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)

    builder.create_dot = create_dot
    builder.create_fma = create_fma


def atomics() -> None:
    """Follows from `map_dtype`: the extension's atomics do not know bfloat16. Programs run one after the other here, so
    a read, an operation and a write of each element in turn are atomic."""
    builder = interpreter.InterpreterBuilder
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas
    kinds = interpreter._ir.ATOMIC_OP
    operations: dict[Any, Callable[[Any, Any], Any]] = {
        kinds.FADD: np.add,
        kinds.MAX: np.maximum,
        kinds.MIN: np.minimum,
        kinds.XCHG: lambda old, new: new,
    }

    def create_atomic_rmw(self: Any, kind: Any, ptr: Any, val: Any, mask: Any, *order: Any) -> Any:
        if val.data.dtype != BFLOAT16:
            return rmw(self, kind, ptr, val, mask, *order)
        old = np.zeros(val.data.shape, BFLOAT16)
        for index in zip(*np.nonzero(np.broadcast_to(mask.data, val.data.shape)), strict=True):
            where, always = ptr.data[index].reshape(1), np.ones(1, bool)
            read = interpreter._interpreter.load(where, always, np.zeros(1, _BITS), _BITS).view(BFLOAT16)
            new = np.asarray(operations[kind](read[0], val.data[index]), BFLOAT16).reshape(1)
            interpreter._interpreter.store(where, _bits(new), always)
            old[index] = read[0]
        return interpreter.TensorHandle(old, val.dtype.scalar)

    def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *order: Any) -> Any:
        if val.data.dtype != BFLOAT16:
            return cas(self, ptr, cmp, val, *order)
        cmp, val = (interpreter.TensorHandle(_bits(each.data), tl.uint16) for each in (cmp, val))
        old = cas(self, ptr, cmp, val, *order)
        return interpreter.TensorHandle(old.data.view(BFLOAT16), tl.bfloat16)

    builder.create_atomic_rmw = create_atomic_rmw
    builder.create_atomic_cas = create_atomic_cas


def is_half(dtype: Any) -> bool:
    """Whether it is one of the two 16-bit floats."""
    return bool(dtype in (BFLOAT16, np.float16))


def _bits_dtype(dtype: Any) -> Any:
    return _BITS if dtype == BFLOAT16 else dtype


def _bits(data: Array) -> Array:
    """The same elements as the extension can read them."""
    return np.ascontiguousarray(data).reshape(data.shape).view(_BITS) if data.dtype == BFLOAT16 else data


def _in_eight_bits(data: Array, dtype: Any, largest: float) -> Array:
    wide = data.astype(np.float32)
    return np.asarray(np.clip(wide, -largest, largest).astype(dtype).view(np.uint8))


def _rounded(data: Array, dtype: Any, to_zero: bool) -> Array:
    """`data` as `dtype`, rounded to nearest even or towards zero."""
    nearest = data.astype(dtype)
    if not to_zero or dtype.itemsize >= data.dtype.itemsize:
        return nearest
    too_far = np.abs(nearest.astype(data.dtype)) > np.abs(data)  # infinity has come of a finite number, too
    bits = nearest.view(f"u{dtype.itemsize}")
    return np.asarray((bits - too_far.astype(bits.dtype)).view(dtype))
