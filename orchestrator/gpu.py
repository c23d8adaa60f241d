"""The GPU as the driver and the file system show it, without importing torch."""

from __future__ import annotations

import os
from pathlib import Path

import pynvml


def present() -> bool:
    """Whether a GPU is there that this process may use (CUDA through NVML, ROCm through /dev/kfd)."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or os.environ.get("HIP_VISIBLE_DEVICES") == "":
        return False
    return _nvidia_count() > 0 or Path("/dev/kfd").exists()


def versions() -> dict[str, str]:
    """The driver's version, by name, where NVML can say it."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return {}
    try:
        return {"driver": str(pynvml.nvmlSystemGetDriverVersion())}
    finally:
        pynvml.nvmlShutdown()


def _nvidia_count() -> int:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()
