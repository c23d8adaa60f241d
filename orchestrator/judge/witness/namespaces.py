"""Functions of torch, triton, the standard library and our own modules that were replaced.

Owns snapshots of namespaces and their comparison by identity, in three circles: `near` (what measures and judges, after
every call), `middle` (what torch and Triton call by, after the import and at the end) and `wide` (every loaded module
of torch, triton, numpy and ours with its classes, at the end). Entries that appear later are lazily loaded parts unless
they hide another of the same name; a value that was no function, class or module may be a cache and is left out.

Cannot see: a function that was replaced and put back before the next look.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from operator import attrgetter, is_
from typing import Any

import torch
from triton.language import core
from triton.runtime import autotuner, interpreter, jit

from orchestrator.judge.witness.origin import REPAIRS, TORCH_FOLDER

_NEAR_MODULES = """
    builtins sys time math json os socket random threading struct torch.nn.functional torch.cuda torch.random
    torch.testing triton triton.testing triton.runtime triton.runtime.jit triton.runtime.autotuner
    triton.runtime.interpreter
"""
_NEAR_CLASSES = (torch.cuda.streams.Event, torch.cuda.streams.Stream, torch.Generator, jit.JITFunction)
_MIDDLE_MODULES = """
    torch torch.autograd torch.library torch._C._nn torch._ops torch.overrides torch.utils._python_dispatch
    triton.language triton.language.core triton.language.math triton.runtime.driver triton.compiler.compiler
    weakref gc ctypes subprocess operator functools
"""
_MIDDLE_CLASSES = (
    *(torch.Tensor, torch._C.TensorBase, torch.autograd.Function, torch._ops.OpOverload, torch._ops.OpOverloadPacket),
    *(jit.KernelInterface, autotuner.Autotuner, autotuner.Heuristics, autotuner.Config, interpreter.GridExecutor),
    *(interpreter.InterpretedFunction, core.tensor, core.dtype, core.constexpr),
)
_WIDE = ("torch", "triton", "orchestrator", "numpy")
_FUNCTIONS = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, property, staticmethod),
    *(classmethod, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType),
)
_MOST_REPORTED = 16
_CODE = attrgetter("__code__")
_TEXT = 160  # characters of a sentence
_WRAPPED = ("__wrapped__", "_torchdynamo_orig_callable")
_INTERPRETED_FILES = (str(interpreter.__file__), REPAIRS)


class Snapshot:
    """Some namespaces as they were."""

    def __init__(self, spaces: Iterable[_Space]) -> None:
        self._spaces = list(spaces)

    def changes(self, *, bodies: bool = False) -> list[str]:
        """Entries that are not what they were, each reported once; with `bodies` also functions with other code."""
        return [sentence for space in self._spaces for sentence in space.changes(bodies)][:_MOST_REPORTED]


class _Space:
    """One namespace, and those that a name missing in it is looked up in. Comparing runs in C while nothing changes."""

    def __init__(self, name: str, namespace: Mapping[str, Any], beneath: tuple[Mapping[str, Any], ...] = ()) -> None:
        self._name = name
        self._namespace = namespace
        self._beneath = beneath
        self._all = frozenset(namespace)
        kept = {key: value for key, value in dict(namespace).items() if issubclass(type(value), _FUNCTIONS)}
        self._keys = list(kept)
        self._values: list[Any] = list(kept.values())
        self._functions = [value for value in self._values if type(value) is types.FunctionType]
        self._bodies = [function.__code__ for function in self._functions]

    def changes(self, bodies: bool) -> Iterator[str]:
        if not all(map(is_, map(self._namespace.get, self._keys), self._values)):
            yield from self._replaced()
        if len(self._namespace) > len(self._all):
            yield from self._shadowed()
        if bodies and not all(map(is_, map(_CODE, self._functions), self._bodies)):
            yield from self._rewritten()

    def _replaced(self) -> Iterator[str]:
        for place, (key, value) in enumerate(zip(self._keys, self._values, strict=True)):
            now = self._namespace.get(key)
            if now is value:
                continue
            self._values[place] = now
            if not _expected(self._name, value, now):
                yield f"{self._name}.{key} was replaced"[:_TEXT]

    def _rewritten(self) -> Iterator[str]:
        for place, (function, body) in enumerate(zip(self._functions, self._bodies, strict=True)):
            if function.__code__ is not body:
                self._bodies[place] = function.__code__
                yield f"{self._name}.{function.__name__} was given other code"[:_TEXT]

    def _shadowed(self) -> Iterator[str]:
        new = frozenset(self._namespace) - self._all
        self._all |= new
        for key in sorted(map(str, new)):
            value = self._namespace.get(key)
            hidden = next((one[key] for one in self._beneath if key in one), value)
            function = issubclass(type(value), _FUNCTIONS) and type(value) is not types.ModuleType
            if function and value is not hidden and not _expected(self._name, hidden, value):
                yield f"{self._name}.{key} was put before another"[:_TEXT]


def _expected(name: str, before: Any, now: Any) -> bool:
    """What Triton's interpreter leaves in triton.language (before 3.6), and what torch's compiler wraps on loading."""
    inner = now.func if type(now) is partial else now.fget if type(now) is property else now
    file = inner.__code__.co_filename if type(inner) is types.FunctionType else ""
    if name.startswith("triton.language"):
        return inner is print or file.startswith(_INTERPRETED_FILES)
    if type(now) is property:
        return file.startswith(TORCH_FOLDER)
    return file.startswith(TORCH_FOLDER) and before in (inner.__dict__.get(name) for name in _WRAPPED)


def near() -> Snapshot:
    """What measures and judges; cheap enough for every call."""
    ours = {name for name in sys.modules if name.startswith("orchestrator.judge")}
    return _snapshot(ours | set(_NEAR_MODULES.split()), _NEAR_CLASSES)


def middle() -> Snapshot:
    """What a cheat would replace first, besides; half a millisecond."""
    return _snapshot(set(_MIDDLE_MODULES.split()), _MIDDLE_CLASSES)


def _snapshot(modules: set[str], classes: Iterable[type]) -> Snapshot:
    below = (vars(builtins),)
    return Snapshot([_Space(name, vars(_module(name)), below) for name in sorted(modules)] + [*map(_of_class, classes)])


def _of_class(one: type) -> _Space:
    return _Space(f"{one.__module__}.{one.__qualname__}", vars(one), tuple(vars(base) for base in one.__mro__[1:]))


@cache
def wide() -> Snapshot:
    """Every loaded module of torch, triton, numpy and ours, with its classes; tens of milliseconds."""
    return Snapshot(_modules_and_classes())


def _modules_and_classes() -> Iterator[_Space]:
    yield _Space("sys.modules", sys.modules)
    classes: dict[int, type] = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] not in _WIDE or not isinstance(module, types.ModuleType):
            continue
        yield _Space(name, vars(module))
        for value in list(vars(module).values()):
            if issubclass(type(value), type) and value.__module__ == name:
                classes[id(value)] = value
    for one in classes.values():
        yield _Space(f"{one.__module__}.{one.__qualname__}", vars(one))


def _module(name: str) -> types.ModuleType:
    __import__(name)
    return sys.modules[name]
