"""What a launch hands to a kernel in Triton's interpreter, as on a GPU.

Owns scalars, the grid and which arguments are constants; tells `recording` of each launch.
"""

from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter, jit

from orchestrator.judge.interpreter import recording
from orchestrator.judge.memory import device_of

_MOST_PROGRAMS = ((1 << 31) - 1, 65_535, 65_535)  # along each axis of a grid, on NVIDIA's cards
_OWN = {"grid", "warmup"}  # what the interpreter of 3.5 passes on among the arguments of a launch
_owners: dict[Any, Any] = {}  # the function that runs -> the InterpretedFunction it was made from


def remember_owners() -> None:
    """Fault (3.5 to 3.7): who runs a kernel knows only its rewritten function, whose annotations have become text, and
    none of the decorator's arguments. A table leads back to what the decorator made."""
    rewrite = interpreter.InterpretedFunction.rewrite

    def remembered(self: Any) -> Any:
        fn = rewrite(self)
        _owners[fn] = self
        return fn

    interpreter.InterpretedFunction.rewrite = remembered


def attributes() -> None:
    """Fault (3.5 to 3.7): an interpreted kernel has no `src`, `params`, `cache_key` and the like. They are those of the
    kernel that the compiler would be given, but for `cache_key`, which is of its own source alone."""

    def of_the_compiled(self: Any, name: str) -> Any:
        if name.startswith("__") and name != "__globals__":
            raise AttributeError(name)
        if name == "cache_key":
            return hashlib.sha256(_compiled(self).src.encode()).hexdigest()
        return getattr(_compiled(self), name)

    interpreter.InterpretedFunction.__getattr__ = of_the_compiled


def arguments_stay() -> None:
    """Fault (3.5 to 3.7): arguments are moved to the CPU and back by operations of torch's, which must not be taken for
    the kernel's, and an object with `data_ptr` and `dtype` that is no tensor is refused. On the CPU nothing is moved.
    (An argument under two names was copied twice by versions before these.)"""
    there, back = interpreter.GridExecutor._init_args_hst, interpreter.GridExecutor._restore_args_dev

    def init_args_hst(self: Any, args: Any, kwargs: Any) -> Any:
        return (list(args), dict(kwargs)) if _on_the_cpu(args, kwargs) else there(self, args, kwargs)

    def restore_args_dev(self: Any, args: Any, args_hst: Any, kwargs: Any, kwargs_hst: Any) -> None:
        if not _on_the_cpu(args, kwargs):
            back(self, args, args_hst, kwargs, kwargs_hst)

    interpreter.GridExecutor._init_args_hst = init_args_hst
    interpreter.GridExecutor._restore_args_dev = restore_args_dev


def scalars() -> None:
    """Fault (3.5 to 3.7): a float stays Python's and has no `.to()`, a bool does not fit its type, an int between 2^31
    and 2^32 is given as unsigned 32 bits under a 64-bit type. Each becomes a scalar of the type a GPU launch gives."""
    others = interpreter._implicit_cvt

    def as_launched(arg: Any) -> Any:
        return scalar(arg) if isinstance(arg, bool | int | float) else others(arg)

    interpreter._implicit_cvt = as_launched


def launch() -> None:
    """Faults (3.5 to 3.7): a grid function is given the interpreter's tensors and must return a tuple; only "constexpr"
    and "tl.constexpr" count as such, not "triton.language.constexpr"; the type that an annotation gives a scalar is
    ignored; numpy warns of overflow and division by zero where a GPU does not; a grid may be of any size. Each is done
    as a GPU launch does it."""
    run = interpreter.GridExecutor.__call__

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        owner = _owners[self.fn]
        options = {name: value for name, value in kwargs.items() if name not in owner.arg_names and name not in _OWN}
        if kwargs.get("warmup"):
            return None
        named = {name: value for name, value in kwargs.items() if name in owner.arg_names}
        bound = inspect.getcallargs(self.fn, *args, **named)
        parameters = parameters_of(owner)
        recording.record(owner, parameters, bound, options)
        self.grid = _grid(self.grid(bound) if callable(self.grid) else self.grid)
        self.constexprs = [parameter.name for parameter in parameters if parameter.is_constexpr]
        arguments = {p.name: _as_annotated(p, bound[p.name]) for p in parameters}
        with np.errstate(all="ignore"):
            return run(self, **arguments)

    interpreter.GridExecutor.__call__ = launched


@cache
def parameters_of(owner: Any) -> Sequence[Any]:
    """The parameters of an interpreted kernel as the compiler sees them."""
    return tuple(_compiled(owner).params)


@cache
def _compiled(owner: Any) -> Any:
    return jit.JITFunction(owner.fn, **owner.kwargs)


def scalar(value: bool | int | float, type_name: str = "") -> Any:
    """A number as the scalar tensor of a GPU launch; its type is an annotation's, `type_name`, or follows the value."""
    dtype = tl.str_to_ty(type_name or jit.mangle_type(value), None)
    data = np.array([value]).astype(interpreter._get_np_dtype(dtype))
    return tl.tensor(interpreter.TensorHandle(data, dtype), dtype)


def _on_the_cpu(args: Any, kwargs: Any) -> bool:
    tensors = [getattr(arg, "base", arg) for arg in (*args, *kwargs.values())]  # the base of one seen as another type
    return all(device_of(tensor).type == "cpu" for tensor in tensors if isinstance(tensor, torch.Tensor))


def _as_annotated(parameter: Any, value: Any) -> Any:
    number = isinstance(value, bool | int | float)
    if not number or parameter.is_constexpr or not parameter.annotation_type or parameter.annotation_type[0] == "*":
        return value
    return scalar(value, parameter.annotation_type)


def _grid(grid: Any) -> tuple[int, ...]:
    sizes = tuple(operator.index(size) for size in grid)
    if any(size > most for size, most in zip(sizes, _MOST_PROGRAMS, strict=False)):
        raise RuntimeError(f"Triton Error [CUDA]: invalid argument: a grid of {sizes}, {_MOST_PROGRAMS} is the most")
    return sizes
