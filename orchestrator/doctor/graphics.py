"""The GPU, and what a kernel on it takes beside: the driver, a GPU to itself, a compiler for launchers, a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from orchestrator import gpu
from orchestrator.doctor.condition import Asked, Condition, State, silent
from orchestrator.doctor.disk import unwritable
from orchestrator.doctor.processes import first_error, run
from orchestrator.judge import surroundings
from orchestrator.text import printable


def graphics(asked: Asked) -> Condition:
    """A GPU that this process may use."""
    found = ", ".join(f"{device.name} ({device.memory_bytes >> 30} GiB)" for device in gpu.devices())
    if asked.settings.judge.device == "cpu":
        return Condition("gpu", State.UNNEEDED, "--device cpu: kernels run in Triton's interpreter")
    if asked.gpu:
        return Condition("gpu", State.OK, found or "a GPU with ROCm (/dev/kfd)")
    hidden = f"{found}, hidden by CUDA_VISIBLE_DEVICES" if found else "no GPU is visible"
    if asked.settings.judge.device == "gpu":
        return Condition("gpu", State.LACKING, hidden, "run where there is one, or give --device cpu", essential=True)
    said = f"{hidden}: kernels run in Triton's interpreter, over the quick subset, and speed is not measured"
    return Condition("gpu", State.UNNEEDED, said, "to judge as they will run, use a machine with a GPU")


def driver(asked: Asked) -> Condition:
    """NVIDIA's driver, as NVML answers for it."""
    version, problem = gpu.versions().get("driver"), gpu.driver_problem()
    if version:
        return Condition("driver", State.OK, f"NVIDIA driver {version}")
    if any(Path("/dev").glob("nvidia[0-9]*")):
        advice = "install the driver's NVML library (libnvidia-ml.so.1), in a container by its GPU option; or reboot"
        return Condition("driver", State.LACKING, f"there is an NVIDIA GPU, but NVML says: {problem}", advice)
    if asked.gpu:
        return Condition("driver", State.OK, "ROCm's /dev/kfd is there; NVML has nothing to say about it")
    return Condition("driver", State.UNNEEDED, "no NVIDIA driver, and no GPU that would need one")


def gpu_users(asked: Asked) -> Condition:
    """Whether somebody else computes on a GPU. It does not change a verdict on correctness; times it does."""
    devices = gpu.devices() if asked.gpu else ()
    if not devices:
        return Condition("gpu users", State.UNNEEDED, "no GPU that NVML could be asked about")
    taken = [f"{device.name}: {_use(device)}" for device in devices if device.pids or device.busy_percent]
    if taken:
        advice = "wait for them, or choose another GPU by CUDA_VISIBLE_DEVICES: times taken beside others mean little"
        return Condition("gpu users", State.LACKING, "; ".join(taken), advice)
    used = max(device.used_bytes for device in devices)
    # From inside a container NVML lists no processes of the outside; the memory in use shows them.
    return Condition(
        "gpu users", State.OK, f"no process is listed on a GPU, none is busy, {used / 2**30:.1f} GiB in use"
    )


def _use(device: gpu.Device) -> str:
    pids = f"process {', '.join(map(str, device.pids))}" if device.pids else "no process is listed"
    busy = "" if device.busy_percent is None else f", {device.busy_percent} % busy"
    return f"{pids}{busy}, {device.used_bytes / 2**30:.1f} GiB in use"


def compiler(asked: Asked) -> Condition:
    """A C compiler that finds Python's headers, tried: Triton compiles a launcher for each kernel on a GPU."""
    if not asked.gpu:
        return Condition("c compiler", State.UNNEEDED, "Triton's interpreter compiles nothing")
    return tried_compiler()


def tried_compiler() -> Condition:
    """The compiler that Triton takes in a candidate's environment: CC, else gcc, else clang on its PATH."""
    path = surroundings.search_path()
    name = os.environ.get("CC", shutil.which("gcc", path=path) or shutil.which("clang", path=path))
    kept = {variable: os.environ[variable] for variable in surroundings.KEPT_VARIABLES if variable in os.environ}
    advice = "install gcc and Python's headers (Debian: gcc, python3-dev), or set CC to a compiler"
    if name is None:
        return Condition("c compiler", State.LACKING, f"there is no gcc or clang on {path}", advice, essential=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "launcher.c"
        source.write_text("#include <Python.h>\nint answer(void) { return PY_MAJOR_VERSION; }\n")
        include = sysconfig.get_path("include", "posix_prefix")
        command = [name, str(source), "-shared", "-fPIC", f"-I{include}", "-o", f"{folder}/launcher.so"]
        try:
            result = run(command, kept | {"PATH": path})
        except OSError as error:
            said = f"{printable(name) or 'CC, which is empty,'} cannot be run: {error.strerror}"
            return Condition("c compiler", State.LACKING, said, advice, essential=True)
        except subprocess.TimeoutExpired:
            return silent("c compiler", f"try `{printable(name)} --version`")
    if result.returncode:
        said = f"{printable(name)} compiles no Python extension: {first_error(result.stderr)}"
        return Condition("c compiler", State.LACKING, said, advice, essential=True)
    return Condition("c compiler", State.OK, f"{printable(name)} compiles against Python's headers")


def triton_cache(asked: Asked) -> Condition:
    """The folder where Triton keeps what it compiled. Candidates have one of their own, in scratch."""
    if not asked.gpu:
        return Condition("triton cache", State.UNNEEDED, "Triton's interpreter keeps nothing")
    return writable_cache()


def writable_cache() -> Condition:
    """Whether Triton's cache can be written where it would be outside the judge."""
    home = os.environ.get("TRITON_HOME") or str(Path.home())
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path(home) / ".triton" / "cache")
    if problem := unwritable(folder):
        said = f"{printable(str(folder))} cannot be written: {problem}; verdicts do not need it, running bench.py does"
        return Condition("triton cache", State.LACKING, said, "set TRITON_CACHE_DIR to a folder that can be written")
    return Condition("triton cache", State.OK, f"{printable(str(folder))} can be written")
