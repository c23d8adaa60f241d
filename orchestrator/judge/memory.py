"""Buffers that the judge allocates and a candidate can see: memfd on the CPU, driver allocations with IPC on a GPU.

Inputs go to the candidate through one arena and outputs come back through another; no other memory of the judge is
ever mapped in a candidate. On a GPU each arena is an allocation of its own, in whole 2 MiB pages, because an IPC
handle opens the whole block that holds the address, and torch's caching allocator would put the reference's results
in the same block. Owns allocation, handles and views; knows nothing of cases.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

ALIGNMENT = (
    512  # bytes; what torch's own allocator gives, so that Triton specialises on divisibility as it would in use
)
_PAGE = 2 << 20


@dataclass(frozen=True)
class Slot:
    """A tensor within an arena, with `zone` bytes of nothing on either side. JSON-able by `vars`."""

    offset: int
    shape: tuple[int, ...]
    dtype: str
    zone: int = 0
    strides: tuple[int, ...] | None = None  # None: contiguous

    @property
    def nbytes(self) -> int:
        """Bytes from the tensor's first to its last element."""
        return int(self.span * torch_dtype(self.dtype).itemsize)

    @property
    def span(self) -> int:
        """Elements from the tensor's first to its last, those between its rows included."""
        if self.strides is None or not math.prod(self.shape):
            return int(math.prod(self.shape))
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


def torch_dtype(name: str) -> torch.dtype:
    """torch.float16 for "float16"; raises KeyError for what is no dtype."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise KeyError(name)
    return dtype


def device_of(tensor: torch.Tensor) -> torch.device:
    """Where it lies, whatever the interpreter's stand-ins have `tensor.device` answer."""
    device: torch.device = torch._C.TensorBase.device.__get__(tensor)
    return device


Form = tuple[tuple[int, ...], torch.dtype, tuple[int, ...] | None]  # shape, dtype, strides unless contiguous


def form_of(tensor: torch.Tensor) -> Form:
    """What a place for a tensor must be like."""
    return tuple(tensor.shape), tensor.dtype, None if tensor.is_contiguous() else tensor.stride()


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides; of one with gaps between its rows too, which clone() would close."""
    if tensor.is_contiguous():
        return tensor.clone()
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def slots(forms: Sequence[Form], zone: int = 0) -> tuple[list[Slot], int]:
    """Places for tensors of these forms, one after the other, and the bytes they take together."""
    placed, end = [], 0
    for shape, dtype, strides in forms:
        slot = Slot(end + zone, tuple(shape), str(dtype).removeprefix("torch."), zone, strides)
        placed.append(slot)
        end = -(-(slot.offset + slot.nbytes + zone) // ALIGNMENT) * ALIGNMENT
    return placed, end


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements' bytes in order, without what lies between them."""
    dense = tensor.contiguous()  # which one element of any stride is, so that its stride must be said
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


def tensor_in(region: torch.Tensor, slot: Slot) -> torch.Tensor:
    """The tensor of a slot within its region. They share storage, so the zones lie beside it for whoever strays."""
    if not slot.nbytes:
        return _empty(region, slot)
    data = region[slot.zone : slot.zone + slot.nbytes].view(torch_dtype(slot.dtype))
    return data.view(slot.shape) if slot.strides is None else data.as_strided(slot.shape, slot.strides)


def zones_in(region: torch.Tensor, slot: Slot) -> tuple[torch.Tensor, torch.Tensor]:
    """The bytes before and after the tensor."""
    return region[: slot.zone], region[slot.zone + slot.nbytes :]


def counts(marks: Sequence[torch.Tensor]) -> list[int]:
    """How many elements of each are true. Asked of the device at once, because each answer is waited for."""
    found: list[int] = torch.stack([one.sum() for one in marks]).tolist() if marks else []
    return found


def gaps_in(region: torch.Tensor, slot: Slot) -> torch.Tensor:
    """The bytes between the tensor's rows that are none of its elements."""
    data = region[slot.zone : slot.zone + slot.nbytes]
    if slot.strides is None or not slot.nbytes:
        return data[:0]
    foreign = torch.ones(slot.span, dtype=torch.bool, device=region.device)
    foreign.as_strided(slot.shape, slot.strides).fill_(False)
    return data.view(slot.span, -1)[foreign]


def _empty(region: torch.Tensor, slot: Slot) -> torch.Tensor:
    return torch.empty(slot.shape, dtype=torch_dtype(slot.dtype), device=region.device)


class HostArena:
    """Memory of a memfd. The candidate gets the descriptor; the size is sealed so that it cannot pull the rug away."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = max(nbytes, mmap.PAGESIZE)
        self.used = 0  # bytes from its beginning that hold something
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.nbytes)
        _seal(self.fd)
        self._map = mmap.mmap(self.fd, self.nbytes)

    @property
    def handle(self) -> dict[str, object]:
        """What the candidate needs to attach; the descriptor travels beside it."""
        return {"kind": "host", "nbytes": self.nbytes}

    def region(self, slot: Slot) -> torch.Tensor:
        """The bytes of that slot, zones included, sharing the arena's memory."""
        return _host_region(self._map, slot)

    def close(self) -> None:
        """Give the descriptor back; the mapping goes with the last tensor."""
        os.close(self.fd)


class DeviceArena:
    """Device memory from the driver, in whole pages of its own."""

    fd: int | None = None

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-max(nbytes, 1) // _PAGE) * _PAGE
        self.used = 0  # bytes from its beginning that hold something
        self._pointer = ctypes.c_uint64()
        _make_context_current()
        _driver().check("MemAlloc", ctypes.byref(self._pointer), ctypes.c_size_t(self.nbytes))
        self._handle = _IpcHandle()
        _driver().check("IpcGetMemHandle", ctypes.byref(self._handle), self._pointer)

    @property
    def handle(self) -> dict[str, object]:
        """What the candidate needs to attach."""
        return {"kind": "device", "nbytes": self.nbytes, "ipc": bytes(self._handle.reserved).hex()}

    def region(self, slot: Slot) -> torch.Tensor:
        """The bytes of that slot, zones included, sharing the arena's memory."""
        return _device_region(self._pointer.value, slot)

    def close(self) -> None:
        """Free the memory; tensors on it must be gone."""
        _driver().check("MemFree", self._pointer)


Arena = HostArena | DeviceArena


class Attached:
    """A candidate's mapping of an arena."""

    def __init__(self, handle: dict[str, Any], fd: int | None) -> None:
        self.nbytes: int = handle["nbytes"]
        self._map: mmap.mmap | None = None
        self._base = 0
        if handle["kind"] == "host":
            assert fd is not None
            self._map = mmap.mmap(fd, handle["nbytes"])
            return
        _make_context_current()
        pointer = ctypes.c_uint64()
        ipc = _IpcHandle.from_buffer_copy(bytes.fromhex(handle["ipc"]))
        _driver().check("IpcOpenMemHandle", ctypes.byref(pointer), ipc, ctypes.c_uint(1))
        self._base = pointer.value

    def region(self, slot: Slot) -> torch.Tensor:
        """The bytes of that slot, zones included."""
        return _host_region(self._map, slot) if self._map is not None else _device_region(self._base, slot)


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


class _Driver:
    """The four driver calls behind a DeviceArena, under CUDA's names or HIP's."""

    def __init__(self) -> None:
        if torch.version.hip:
            self._library, prefix = ctypes.CDLL("libamdhip64.so"), "hip"
            names = {"MemAlloc": "Malloc", "MemFree": "Free"}
        else:
            self._library, prefix = ctypes.CDLL("libcuda.so.1"), "cu"
            names = {"MemAlloc": "MemAlloc_v2", "MemFree": "MemFree_v2", "IpcOpenMemHandle": "IpcOpenMemHandle_v2"}
        self._call = {
            name: getattr(self._library, prefix + names.get(name, name))
            for name in ("MemAlloc", "MemFree", "IpcGetMemHandle", "IpcOpenMemHandle")
        }

    def check(self, name: str, *arguments: object) -> None:
        """Call, and raise RuntimeError with the driver's number when it refuses."""
        if code := self._call[name](*arguments):
            raise RuntimeError(f"the GPU driver refused {name}: error {code}")


@cache
def _driver() -> _Driver:
    return _Driver()


def _make_context_current() -> None:
    """The driver's calls act on the thread's current context; torch makes the primary one current when it allocates."""
    torch.zeros(1, device="cuda")


class _DevicePointer:
    """Device memory in the form that torch.as_tensor takes without a copy."""

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }


def _device_region(base: int, slot: Slot) -> torch.Tensor:
    nbytes = slot.nbytes + 2 * slot.zone
    if not nbytes:
        return torch.empty(0, dtype=torch.uint8, device="cuda")
    return torch.as_tensor(_DevicePointer(base + slot.offset - slot.zone, nbytes), device="cuda")


def _host_region(memory: mmap.mmap | None, slot: Slot) -> torch.Tensor:
    nbytes = slot.nbytes + 2 * slot.zone
    if not nbytes:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(memory, dtype=torch.uint8, count=nbytes, offset=slot.offset - slot.zone)


def _seal(fd: int) -> None:
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
