"""What the kernel file keeps between calls: a fingerprint of each of its globals.

Owns the walk from a global to what it holds: containers, defaults and closures of functions, attributes of the file's
own classes and objects, what lru_cache remembers, the bytes of tensors, how far Python's own iterators and the file's
generators have come. Methods of the candidate's objects are never called. Two calls alike must leave the same
fingerprints (the check `steady_state`): what differs is a count of calls, on the host or in device memory. Cannot see:
state kept in a library's objects, and what lies beyond the bounds.
"""

from __future__ import annotations

import gc
import itertools
import sys
import warnings
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FunctionType, GeneratorType, SimpleNamespace
from typing import Any

import torch

_MOST_GLOBALS = 256
_MOST_VALUES = 20_000  # of one global
_MOST_BYTES = 16 << 20  # of one tensor
_NAME = 80  # characters
_PLAIN = (
    *(int, float, complex, bool, str, bytes, bytearray, type(None), range, slice),
    *(torch.dtype, torch.device, torch.Size),
)
_LISTS = (list, tuple, set, frozenset, deque)
_DICTS = (dict, OrderedDict, defaultdict)
_ITERATORS = (
    *(enumerate, filter, map, zip, reversed),
    *(type(iter(kind())) for kind in (list, tuple, set, str, bytes, bytearray, dict)),
    *(type(iter({}.items())), type(iter({}.values())), type(reversed([])), type(reversed({}))),
    *(type(iter(range(0))), type(iter(range(1 << 70))), type(iter(int, 0))),
    *(kind for kind in vars(itertools).values() if isinstance(kind, type) and issubclass(kind, Iterator)),
)
_LRU = ("_lru_cache_wrapper", "_lru_list_elem")


class Kept:
    """The globals of one kernel file. It is looked up once, among a thousand modules or more."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._names: dict[str, Any] = {}

    def fingerprints(self) -> dict[str, int]:
        """Each global's name and fingerprint; of a file that is not imported, nothing."""
        names = self._names = self._names or self._find()
        held = [item for item in names.items() if not item[0].startswith("__")][:_MOST_GLOBALS]
        return {name[:_NAME]: _Print(names["__name__"]).of(value) for name, value in held}

    def _find(self) -> dict[str, Any]:
        modules = (getattr(module, "__dict__", {}) for module in list(sys.modules.values()))
        return next((names for names in modules if names.get("__file__") in self._files), {})


class _Print:
    """One fingerprint."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._crc = 0
        self._left = _MOST_VALUES
        self._seen: dict[int, object] = {}  # kept, so that an id stays its owner's

    def of(self, value: object) -> int:
        """Of what can be reached from a value."""
        pending = [value]
        while pending and self._left:
            self._left -= 1
            item = pending.pop()
            if type(item) in _PLAIN:
                self._feed(repr(item).encode())
            elif id(item) not in self._seen:
                self._seen[id(item)] = item
                self._feed(type(item).__name__.encode())
                pending += self._inside(item)
        return self._crc

    def _inside(self, item: Any) -> Iterable[object]:
        kind = type(item)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            self._feed(_bytes(item))
            return ()
        if kind in _LISTS or kind in _DICTS:
            self._feed(str(len(item)).encode())  # of one that is longer than the bound too
        if kind in _LISTS:
            return list(item)  # exactly these types: no method of the candidate's runs
        if kind in _DICTS:
            return [*item.keys(), *item.values()]
        if kind is FunctionType:
            return _function(item)
        if kind is CellType:
            return gc.get_referents(item)
        if kind.__name__ in _LRU and kind.__module__ == "functools":
            return gc.get_referents(item)
        if kind is SimpleNamespace:
            return list(vars(item).values())
        if kind is GeneratorType:
            return _generator(item)
        if kind in _ITERATORS:
            return _position(item)
        return self._own(item)

    def _own(self, item: object) -> Iterable[object]:
        """The attributes of the file's own classes and of their instances; of nobody else's."""
        owner = item if isinstance(item, type) else type(item)
        if type.__getattribute__(owner, "__module__") != self._module:
            return ()
        try:
            held: Mapping[str, Any] = (
                type.__getattribute__(owner, "__dict__") if item is owner else object.__getattribute__(item, "__dict__")
            )
        except AttributeError:
            return ()
        return [value for name, value in held.items() if not name.startswith("__")]

    def _feed(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)


def _function(item: Any) -> Iterable[object]:
    return [item.__defaults__, item.__kwdefaults__, item.__closure__, vars(item)]


def _generator(item: GeneratorType[Any, Any, Any]) -> Iterable[object]:
    frame = item.gi_frame
    return [] if frame is None else [frame.f_lasti, *dict(frame.f_locals).values()]


def _position(item: Any) -> Iterable[object]:
    """What an iterator would be made again from; of those that do not say it, their text and what they hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return [item.__reduce__()]
        except TypeError:
            return [*([repr(item)] if type(item) is itertools.count else []), *gc.get_referents(item)]


def _bytes(tensor: Any) -> bytes:
    flat = tensor.detach().reshape(-1)
    return bytes(flat[: _MOST_BYTES // max(1, flat.element_size())].contiguous().view(torch.uint8).cpu().numpy())
