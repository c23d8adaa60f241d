"""Stand-ins for a GPU's host side: what honest code asks torch and Triton's driver before it launches.

They answer as one real card would, an H100 SXM5 80 GB, and do nothing: there is no device, no stream and no clock. They
are for the candidate's process alone. Tensors stay on the CPU, but say that they are on the card: `x.device`,
`x.is_cuda` and the like are shadowed, and a request for device "cuda" is met on the CPU. Where a tensor lies,
`memory.device_of` says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from orchestrator.judge.interpreter.limits import NotInterpretable
from orchestrator.judge.memory import device_of

NAME = "NVIDIA H100 80GB HBM3"
CAPABILITY = (9, 0)
DEVICE = torch.device("cuda", 0)
SHARED_BYTES = 232448  # 227 KB, what one block may ask for
_MEMORY_BYTES = 85_024_112_640

PROPERTIES = SimpleNamespace(
    name=NAME,
    major=CAPABILITY[0],
    minor=CAPABILITY[1],
    total_memory=_MEMORY_BYTES,
    multi_processor_count=132,
    warp_size=32,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=SHARED_BYTES,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=52_428_800,
    is_integrated=0,
    is_multi_gpu_board=0,
)
_AS_TRITON_SAYS = {
    "max_shared_mem": SHARED_BYTES,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1_980_000,
    "mem_clock_rate": 2_619_000,
    "mem_bus_width": 5120,
}
_FACTORIES = (
    "arange empty empty_like empty_permuted empty_strided eye full full_like linspace logspace ones ones_like rand"
    " rand_like randint randn randn_like scalar_tensor tensor as_tensor zeros zeros_like"
)
_METHODS = "new_empty new_empty_strided new_full new_ones new_tensor new_zeros"


def stand_in() -> None:
    """Make torch and Triton's driver answer as that card, in this process, from now on."""
    for name, answer in {**_torch_cuda(), **_nothing_to_do()}.items():
        setattr(torch.cuda, name, answer)
    torch.Tensor.device = property(_device)
    torch.Tensor.get_device = lambda self: _device(self).index
    torch.Tensor.is_cuda, torch.Tensor.is_cpu = property(lambda self: True), property(lambda self: False)
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.Tensor.to = _to(torch.Tensor.to)
    for owner, names in ((torch, _FACTORIES), (torch.Tensor, _METHODS)):
        for name in names.split():
            setattr(owner, name, _met_on_the_cpu(getattr(owner, name)))
    driver.set_active(Driver(GPUTarget("cuda", CAPABILITY[0] * 10 + CAPABILITY[1], 32)))


class _Stream:
    """The default stream: everything asked of it is done already."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    @property
    def device(self) -> torch.device:
        return DEVICE

    def synchronize(self) -> None:
        return

    wait_stream = wait_event = record_event = lambda self, *args: None

    def query(self) -> bool:
        return True


class _Guard:
    """`torch.cuda.device` and its kin: a context in which nothing changes."""

    def __init__(self, *args: Any) -> None:
        self.idx, self.prev_idx = 0, 0

    def __enter__(self) -> None:
        return

    def __exit__(self, *error: object) -> None:
        return


class Driver:
    """What Triton's own code and host code ask of the active driver."""

    def __init__(self, target: Any) -> None:
        self._target = target

    utils = SimpleNamespace(get_device_properties=lambda device=0: dict(_AS_TRITON_SAYS))

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return CAPABILITY

    def get_active_torch_device(self) -> torch.device:
        return DEVICE

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Any:
        raise NotInterpretable("there is no clock to benchmark with in the interpreter")

    get_empty_cache_for_benchmark = get_benchmarker


def _device(tensor: torch.Tensor) -> torch.device:
    device = device_of(tensor)
    return DEVICE if device.type == "cpu" else device


def _torch_cuda() -> dict[str, Any]:
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *args, **kwargs: True,
        "is_tf32_supported": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "device": _Guard,
        "device_of": _Guard,
        "stream": _Guard,
        "Stream": lambda *args, **kwargs: _Stream(),
        "current_stream": lambda device=None: _Stream(),
        "default_stream": lambda device=None: _Stream(),
        "get_device_properties": lambda device=None: SimpleNamespace(**vars(PROPERTIES)),
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_name": lambda device=None: NAME,
        "mem_get_info": lambda device=None: (_MEMORY_BYTES * 9 // 10, _MEMORY_BYTES),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "graph": _not_here("a CUDA graph"),
        "CUDAGraph": _not_here("a CUDA graph"),
        "Event": _not_here("a CUDA event"),
    }


def _nothing_to_do() -> dict[str, Callable[..., None]]:
    names = ("init", "set_device", "synchronize", "empty_cache", "set_stream", "reset_peak_memory_stats", "ipc_collect")
    return {name: lambda *args, **kwargs: None for name in names}


def _not_here(what: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotInterpretable(f"{what} has no meaning without a GPU")

    return refuse


def _met_on_the_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        if _is_gpu(kwargs.get("device")):
            kwargs["device"] = "cpu"
        return make(*args, **kwargs)

    return made


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and _is_gpu(args[0]):
            args = ("cpu", *args[1:])
        if _is_gpu(kwargs.get("device")):
            kwargs["device"] = "cpu"
        return original(self, *args, **kwargs)

    return to


def _is_gpu(device: Any) -> bool:
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    return type(device) is int or (isinstance(device, str) and device.startswith("cuda"))
