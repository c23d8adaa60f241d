"""The GPU as the driver and the file system show it, without importing torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pynvml


@dataclass(frozen=True)
class Device:
    """One GPU, as NVML shows it at this moment. Utilisation is None where the driver does not tell (MIG)."""

    name: str
    memory_bytes: int
    used_bytes: int
    busy_percent: int | None
    pids: tuple[int, ...]  # of the processes that compute on it; a container sees only its own


def present() -> bool:
    """Whether a GPU is there that this process may use (CUDA through NVML, ROCm through /dev/kfd)."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or os.environ.get("HIP_VISIBLE_DEVICES") == "":
        return False
    return _nvidia_count() > 0 or Path("/dev/kfd").exists()


def versions() -> dict[str, str]:
    """The driver's version, by name, where NVML can say it."""
    try:
        with _nvml():
            return {"driver": str(pynvml.nvmlSystemGetDriverVersion())}
    except pynvml.NVMLError:
        return {}


def devices() -> tuple[Device, ...]:
    """Every NVIDIA GPU of the machine, whether or not it is visible to CUDA; none where there is no driver."""
    try:
        with _nvml():
            count = pynvml.nvmlDeviceGetCount()
            return tuple(_device(pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count))
    except pynvml.NVMLError:
        return ()


def driver_problem() -> str:
    """Why NVML cannot be asked, in its words; "" where it can."""
    try:
        with _nvml():
            return ""
    except pynvml.NVMLError as error:
        return str(error)


def _device(handle: object) -> Device:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        busy: int | None = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except pynvml.NVMLError:
        busy = None
    pids = tuple(int(process.pid) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Device(str(pynvml.nvmlDeviceGetName(handle)), int(memory.total), int(memory.used), busy, pids)


@contextmanager
def _nvml() -> Iterator[None]:
    """NVML, for as long as it is needed. Raises NVMLError where there is no driver."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _nvidia_count() -> int:
    try:
        with _nvml():
            return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
