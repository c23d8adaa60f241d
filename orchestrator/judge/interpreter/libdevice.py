"""The device libraries' functions in Triton's interpreter, by numpy where numpy has the function.

Imports no torch: a twin runs within a launch, where nothing of torch's may be seen to compute.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from orchestrator.judge.interpreter.language import bound
from orchestrator.judge.interpreter.limits import NotInterpretable

_LIBRARY = "triton.language.extra.libdevice"
_LIBRARIES = ("libdevice", "cuda.libdevice", "hip.libdevice")
_OTHERS = ("cuda", "cuda.utils", "cuda.gdc", "hip", "hip.utils")

Array = np.ndarray[Any, Any]
Twin = Callable[..., Any]


def twins() -> None:
    """Fault (3.5 to 3.7): a function of libdevice is a stub that returns None, or demands a compiler. It is replaced by
    its numpy twin where there is one, and else says that it cannot be interpreted."""
    for library in _found(_LIBRARIES):
        for name, value in list(vars(library).items()):
            if getattr(value, "__module__", None) == library.__name__ and callable(value):
                setattr(library, name, _as_device_function(name, _TWINS.get(name)))
    for module in _found(_OTHERS):
        for name, value in list(vars(module).items()):
            if tl.core.is_builtin(value):
                setattr(module, name, bound(value))


def _found(names: tuple[str, ...]) -> list[ModuleType]:
    """The modules of those names; Triton makes some of them twice, once for imports and once as an attribute."""
    modules: list[ModuleType] = []
    for name in names:
        with contextlib.suppress(ImportError):  # a part that this version has not
            modules.append(importlib.import_module(f"triton.language.extra.{name}"))
        with contextlib.suppress(AttributeError):
            modules.append(operator.attrgetter(name)(tl.extra))
    return modules


def _as_device_function(name: str, twin: Twin | None) -> Twin:
    def call(*args: Any, **kwargs: Any) -> Any:
        if twin is None:
            raise NotInterpretable(f"libdevice.{name} has no twin in the interpreter")
        tensors = [interpreter.interpreter_semantic.to_tensor(arg) for arg in args]
        result = np.asarray(twin(*_alike([tensor.handle.data for tensor in tensors])))
        if result.dtype not in _KINDS:
            raise TypeError(f"libdevice.{name} takes no {result.dtype}")
        dtype = _KINDS[result.dtype]
        shape = next((tensor.shape for tensor in tensors if tensor.type.is_block()), None)
        kind = dtype if shape is None else tl.block_type(dtype, [int(size) for size in shape])
        return tl.tensor(interpreter.TensorHandle(result, dtype), kind)

    call.__name__, call.__module__ = name, _LIBRARY  # Triton takes for its own what such a module defines
    return call


def _alike(arrays: list[Array]) -> list[Array]:
    """Of one shape, and each scalar in the type of the blocks beside it."""
    widest = max(arrays, key=lambda array: array.size)
    same_kind = [a.astype(widest.dtype) if a.dtype.kind == widest.dtype.kind else a for a in arrays]
    return list(np.broadcast_arrays(*same_kind))


def _precise(function: Twin) -> Twin:
    """A function computed in float64 and rounded once."""
    return lambda *args: np.asarray(function(*[a.astype(np.float64) for a in args])).astype(args[0].dtype)


def _each(function: Callable[..., float]) -> Twin:
    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError):
            return math.nan if any(map(math.isnan, values)) else math.inf

    vectorized = np.vectorize(guarded, otypes=[np.float64])
    return lambda *args: vectorized(*args).astype(args[0].dtype)


def _as_int(function: Twin, dtype: Any = np.int32) -> Twin:
    return lambda *args: np.asarray(function(*args)).astype(dtype)


def _bits_as(dtype: Any) -> Twin:
    return lambda array: np.ascontiguousarray(array).view(dtype)


def _round_half_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(0.5, x)), x.dtype)


_KINDS: dict[Any, Any] = {
    np.dtype(name): getattr(tl, name)
    for name in (
        "float16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    )
}
_PLAIN = (
    "floor ceil trunc rint exp2 sin cos tan log2 exp cosh sinh tanh log log10 log1p expm1 hypot cbrt fmod copysign"
    " nextafter sqrt abs"
)
_TWINS: dict[str, Twin] = {
    **{name: getattr(np, name) for name in _PLAIN.split()},
    "nearbyint": np.rint,
    "round": _round_half_away,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "remainder": _each(math.remainder),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "lgamma": _each(math.lgamma),
    "tgamma": _each(math.gamma),
    "rsqrt": _precise(lambda x: 1 / np.sqrt(x)),
    "rsqrt_rn": _precise(lambda x: 1 / np.sqrt(x)),
    "rcbrt": _precise(lambda x: 1 / np.cbrt(x)),
    "exp10": _precise(lambda x: np.power(10.0, x)),
    "sinpi": _precise(lambda x: np.sin(np.pi * x)),
    "cospi": _precise(lambda x: np.cos(np.pi * x)),
    "normcdf": _each(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "rhypot": _precise(lambda x, y: 1 / np.hypot(x, y)),
    "norm3d": _precise(lambda x, y, z: np.sqrt(x * x + y * y + z * z)),
    "fdim": lambda x, y: np.where(x > y, x - y, x.dtype.type(0)),
    "saturatef": lambda x: np.nan_to_num(np.clip(x, 0, 1), nan=0.0),
    "fma": _precise(lambda x, y, z: x * y + z),
    "fma_rn": _precise(lambda x, y, z: x * y + z),
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "sqrt_rn": np.sqrt,
    "rcp_rn": lambda x: np.divide(x.dtype.type(1), x),
    "fast_dividef": np.divide,
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_tanhf": np.tanh,
    "fast_expf": np.exp,
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_exp10f": _precise(lambda x: np.power(10.0, x)),
    "fast_powf": np.power,
    "isnan": _as_int(np.isnan),
    "isinf": _as_int(np.isinf),
    "finitef": _as_int(np.isfinite),
    "isfinited": _as_int(np.isfinite),
    "signbit": _as_int(np.signbit),
    "ldexp": lambda x, n: np.ldexp(x, n).astype(x.dtype),
    "scalbn": lambda x, n: np.ldexp(x, n).astype(x.dtype),
    "llrint": _as_int(np.rint, np.int64),
    "llround": _as_int(_round_half_away, np.int64),
    "float2int_rn": _as_int(np.rint),
    "float2int_rz": _as_int(np.trunc),
    "float2int_rd": _as_int(np.floor),
    "float2int_ru": _as_int(np.ceil),
    "int2float_rn": lambda x: x.astype(np.float32),
    "uint2float_rn": lambda x: x.astype(np.float32),
    "float_as_int": _bits_as(np.int32),
    "int_as_float": _bits_as(np.float32),
    "float_as_uint": _bits_as(np.uint32),
    "uint_as_float": _bits_as(np.float32),
    "double_as_longlong": _bits_as(np.int64),
    "longlong_as_double": _bits_as(np.float64),
}
