"""The GPU as the driver and the file system show it, without importing torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pynvml

from orchestrator.measured import GpuState

T = TypeVar("T")


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


def visible() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES can say to choose one of the GPUs that this process may use; none without NVML."""
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return tuple(name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1"))
    return tuple(str(index) for index in range(_nvidia_count()))


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


def state(name: str, uuid: str, ours: Collection[int]) -> GpuState:
    """What the driver says of one GPU now; `ours` are the processes of ours that use it.

    Of an unknown GPU (no NVML, as on ROCm), the name alone.
    """
    try:
        with _nvml():
            return _state_of(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}"), name, ours)
    except pynvml.NVMLError:
        return GpuState(name, "")


def _state_of(handle: object, name: str, ours: Collection[int]) -> GpuState:
    power = _asked(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    return GpuState(
        name=name,
        driver=str(pynvml.nvmlSystemGetDriverVersion()),
        sm_mhz=_asked(lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
        memory_mhz=_asked(lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM))),
        power_w=None if power is None else power / 1e3,
        temperature_c=_asked(lambda: int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
        utilization=_asked(lambda: int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        others=_others(_asked(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)) or [], ours),
    )


def _others(processes: list[pynvml.c_nvmlProcessInfo_t], ours: Collection[int]) -> tuple[str, ...]:
    """Those that are not ours. In a container the driver's numbers may be the host's: then only their count tells."""
    strangers = [process for process in processes if process.pid not in ours]
    if len(strangers) == len(processes):
        strangers = strangers[len(ours) :]
    return tuple(f"process {process.pid} ({_megabytes(process.usedGpuMemory)})" for process in strangers)


def _megabytes(nbytes: int | None) -> str:
    return "memory unknown" if nbytes is None else f"{nbytes >> 20} MiB"


def _asked(question: Callable[[], T]) -> T | None:
    """The answer, or None where this GPU or its driver has none."""
    try:
        return question()
    except pynvml.NVMLError:
        return None


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
