"""The GPU as the driver and the file system show it, without importing torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pynvml

from orchestrator.measured import GpuState

T = TypeVar("T")


def present() -> bool:
    """Whether a GPU is there that this process may use (CUDA through NVML, ROCm through /dev/kfd)."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or os.environ.get("HIP_VISIBLE_DEVICES") == "":
        return False
    return _nvidia_count() > 0 or Path("/dev/kfd").exists()


def versions() -> dict[str, str]:
    """The driver's version, by name, where NVML can say it."""
    with _nvml() as running:
        return {"driver": str(pynvml.nvmlSystemGetDriverVersion())} if running else {}


def state(name: str, uuid: str, ours: Collection[int]) -> GpuState:
    """What the driver says of one GPU now; `ours` are the processes of ours that use it.

    Of an unknown GPU (no NVML, as on ROCm), the name alone.
    """
    with _nvml() as running:
        full = f"GPU-{uuid.removeprefix('GPU-')}"
        handle = _asked(lambda: pynvml.nvmlDeviceGetHandleByUUID(full)) if running else None
        if handle is None:
            return GpuState(name, "")
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
def _nvml() -> Iterator[bool]:
    """NVML for a while; whether it is there."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _nvidia_count() -> int:
    with _nvml() as running:
        return int(pynvml.nvmlDeviceGetCount()) if running else 0
