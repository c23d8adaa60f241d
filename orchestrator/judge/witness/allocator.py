"""Memory for the candidate's host code, with a zone of canaries on both sides and poison inside.

Owns the padded blocks: where they lie, what is written into them, and whether the zones are intact after a call. A
tensor served from here is an ordinary torch.Tensor on a storage of exactly its own size, aligned to 512 bytes.
Uninitialised memory holds NaN, or a sentinel where the type has no NaN, so an element that no kernel writes shows; in a
recycled call it holds what the last recycled call left in it, as memory from torch's own allocator does.

Catches stores before the beginning and past the end, up to the width of the zone; reads there give NaN. Cannot see: a
store further away, one that writes the canary's own bytes, one within the tensor but in the wrong place, and memory
that came from elsewhere (a copy's result, what the kernel file allocated at import).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy
import torch

from orchestrator.judge.memory import device_of

_EMPTY = "empty.memory_format empty_strided.default empty_like.default new_empty.default new_empty_strided.default"
_ZEROS = "zeros.default zeros_like.default new_zeros.default"
_ONES = "ones.default ones_like.default new_ones.default"
_FULL = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.new_full.default": 2}  # where the value stands
_CONSTANT = {f"aten.{name}": 0 for name in _ZEROS.split()} | {f"aten.{name}": 1 for name in _ONES.split()}
ALLOCATIONS = frozenset(f"aten.{name}" for name in _EMPTY.split()) | frozenset(_CONSTANT) | frozenset(_FULL)

ALIGNMENT = 512  # bytes, as torch's own allocator gives on a GPU
_NARROWEST, _WIDE, _WIDEST = 4 << 10, 64 << 10, 1 << 20  # bytes of a zone
_FLOAT, _INTEGER = 0xFF, 0xA5  # canaries: NaN in every float format that has one with all bits set
_SENTINEL, _TRUE = 0x5A, 0x01  # poison of integers and of booleans
_MOST_KNOWN = 1024  # blocks alive at once; those beyond are padded and poisoned, but not looked at
_MOST_HELD = 256  # blocks
_MOST_HELD_BYTES = 256 << 20  # kept until the call is looked at, though the candidate let them go
_MOST_REPORTED = 32


class _DeviceBlock:
    """Raw device memory in the form that torch.as_tensor takes without a copy; lives as long as a tensor on it."""

    def __init__(self, raw: torch.Tensor, start: int, nbytes: int) -> None:
        self.raw = raw
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (raw.data_ptr() + start, False),
            "version": 3,
        }


_Made: TypeAlias = tuple[Any, int, torch.Tensor]  # the block, where the tensor lies in it, and that part of it, flat


@dataclass
class _Known:
    """One allocation: where its tensor lies in the block, and the block without keeping it alive."""

    described: str
    block: weakref.ref[Any]
    start: int
    end: int
    canary: int


class Allocator:
    """Serves allocations and remembers them for as long as they live."""

    def __init__(self) -> None:
        self._known: list[_Known] = []
        self._held: list[Any] = []
        self._held_bytes = 0
        self._recycling = False
        self._left: dict[
            object, list[_Made]
        ] = {}  # blocks of the last call, if it recycled, by what they were asked for
        self._used: dict[object, list[_Made]] = {}  # of this one

    def begin(self, *, recycling: bool) -> None:
        """Another call begins; one that recycles is given what the call before it left, if that did so too."""
        self.release()
        self._recycling = recycling
        self._left, self._used = (self._used if recycling else {}), {}

    def serve(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], line: int) -> Any:
        """What `func` would return, on padded memory; what it does return where that cannot be."""
        like = _layout(func, args, kwargs)
        if like is None:
            return func(*args, **kwargs)
        device = _device(args, kwargs)
        tensor = self._place(like, device, line)
        value = _value(str(func), args, kwargs)
        return tensor if value is None else tensor.fill_(value)

    def overruns(self) -> list[dict[str, object]]:
        """Zones that are not as they were, each reported once; blocks held for this look are let go."""
        found = self._damaged()
        self.release()
        self._forget_the_dead()
        return found

    def _damaged(self) -> list[dict[str, object]]:
        alive = [(known, block) for known in self._known if (block := known.block()) is not None]
        zones = [_Zone(known, side, zone) for known, block in alive for side, zone in _zones(known, block)]
        hurt = [zone for zone, answer in zip(zones, _hurt(zones), strict=True) if answer]
        return [zone.report() for zone in hurt][:_MOST_REPORTED]

    def beside(self) -> list[tuple[str, int, int]]:
        """The zones of what is alive: whose and on which side, the first address and the one behind the last."""
        found = []
        for known in self._known:
            block = known.block()
            if isinstance(block, numpy.ndarray):
                base = int(block.__array_interface__["data"][0])
                found.append((f"before the tensor {known.described}", base, base + known.start))
                found.append((f"behind the tensor {known.described}", base + known.end, base + block.nbytes))
        return found

    def release(self) -> None:
        """Let go of the blocks that were held for a look at the call."""
        self._held, self._held_bytes = [], 0

    def _place(self, like: torch.Tensor, device: torch.device, line: int) -> torch.Tensor:
        dtype, shape, stride = like.dtype, like.shape, like.stride()
        span = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        nbytes = span * dtype.itemsize
        zone = _zone(nbytes, (shape[-1] if len(shape) else 1) * dtype.itemsize)
        canary, poison = _bytes(dtype)
        asked = (line, dtype, span, device)
        if left := self._left.get(asked):
            made = left.pop(0)
        elif device.type == "cpu":
            made = _host_block(dtype, span, nbytes, zone, canary, poison)
        else:
            made = _device_block(dtype, nbytes, zone, canary, poison, device)
        if self._recycling:
            self._used.setdefault(asked, []).append(made)
        block, start, flat = made
        with torch._C._AutoDispatchBelowAutograd():  # a tensor of its own, not a view of one
            tensor = flat.as_strided(shape, stride)
        name = f"{str(dtype).removeprefix('torch.')} {tuple(shape)}"[:80]
        self._remember(_Known(f"{name} allocated at line {line}", weakref.ref(block), start, start + nbytes, canary))
        self._hold(block, nbytes + 2 * zone)
        return tensor

    def _remember(self, known: _Known) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._forget_the_dead()
        if len(self._known) < _MOST_KNOWN:
            self._known.append(known)

    def _forget_the_dead(self) -> None:
        self._known = [known for known in self._known if known.block() is not None]

    def _hold(self, block: Any, nbytes: int) -> None:
        if self._held_bytes + nbytes <= _MOST_HELD_BYTES and len(self._held) < _MOST_HELD:
            self._held.append(block)
            self._held_bytes += nbytes


def _layout(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """A tensor without memory that has the shape, strides and dtype of what is asked for; None for odd requests."""
    if kwargs.get("pin_memory") or kwargs.get("layout") not in (None, torch.strided):
        return None
    if _device(args, kwargs).type not in ("cpu", "cuda"):
        return None
    try:
        like = func(*args, **{**kwargs, "device": "meta"})
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None  # the real call says what is wrong
    ordinary = like.layout is torch.strided and not like.is_quantized and like.numel() > 0
    return like if ordinary else None


def _device(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.device:
    device = kwargs.get("device")
    if device is None:
        device = device_of(args[0]) if args and isinstance(args[0], torch.Tensor) else "cpu"
    return torch.device(device)


def _value(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What the tensor is filled with; None when it is not."""
    if name in _FULL:
        place = _FULL[name]
        return args[place] if len(args) > place else kwargs["fill_value"]
    return _CONSTANT.get(name)


def _zone(nbytes: int, row: int) -> int:
    """At least a row, and as much as the tensor itself where that is little: a second copy behind it stays inside."""
    wanted = min(max(_NARROWEST, row, min(nbytes, _WIDE)), _WIDEST)
    return -(-wanted // ALIGNMENT) * ALIGNMENT


def _bytes(dtype: torch.dtype) -> tuple[int, int]:
    """The canary's and the poison's byte."""
    if dtype.is_floating_point or dtype.is_complex:
        return _FLOAT, _FLOAT
    return _INTEGER, _TRUE if dtype is torch.bool else _SENTINEL


def _host_block(dtype: torch.dtype, span: int, nbytes: int, zone: int, canary: int, poison: int) -> _Made:
    raw = numpy.empty(2 * zone + ALIGNMENT + nbytes, numpy.uint8)
    start = zone + -(raw.__array_interface__["data"][0] + zone) % ALIGNMENT
    raw.fill(canary)
    if poison != canary:
        raw[start : start + nbytes] = poison
    return raw, start, torch.frombuffer(raw, dtype=dtype, count=span, offset=start)


def _device_block(dtype: torch.dtype, nbytes: int, zone: int, canary: int, poison: int, device: torch.device) -> _Made:
    raw = torch.empty(2 * zone + ALIGNMENT + nbytes, dtype=torch.uint8, device=device)
    start = zone + -(raw.data_ptr() + zone) % ALIGNMENT
    raw.fill_(canary)
    if poison != canary:
        raw[start : start + nbytes].fill_(poison)
    block = _DeviceBlock(raw, start, nbytes)
    return block, start, torch.as_tensor(block, device=raw.device).view(dtype)


class _Zone(NamedTuple):
    """The bytes on one side of an allocation."""

    known: _Known
    side: str
    content: Any  # numpy's on the host, torch's on a device

    def report(self) -> dict[str, object]:
        """How much of it was written to. It is made whole again."""
        changed = int((self.content != self.known.canary).sum())
        self.content[:] = self.known.canary
        return {"tensor": self.known.described, "side": self.side, "bytes": changed}


def _zones(known: _Known, block: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    raw = block.raw if isinstance(block, _DeviceBlock) else block
    return ("before", raw[: known.start]), ("after", raw[known.end :])


def _hurt(zones: list[_Zone]) -> list[bool]:
    """Which zones were written to; those on a device are asked together, because each answer waits for it."""
    answers = [(zone.content != zone.known.canary).any() for zone in zones]
    devices = [answer for answer in answers if isinstance(answer, torch.Tensor)]
    if not devices:
        return [bool(answer) for answer in answers]
    return [
        bool(answer)
        for answer in torch.stack([torch.as_tensor(answer, device=devices[0].device) for answer in answers]).tolist()
    ]
