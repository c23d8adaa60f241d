"""What a candidate finds around it: the paths it may read, the device nodes it may open, its environment variables.

Owns these lists. How they are enforced is `sandbox`'s business. Nothing here may name a person's home, the project's
own checkout, or /etc as a whole: root without capabilities still owns /etc/shadow.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.judge import linux

_SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store")))
# Not /sys/kernel: root, even without capabilities, owns what debugfs and tracefs show there.
_SYS = ("bus", "class", "dev", "devices", "module", "fs/cgroup", "kernel/mm")
_DRIVERS = ("/usr/local/nvidia", "/usr/local/cuda", "/usr/lib/wsl", "/run/opengl-driver", "/run/nvidia/driver")
_DRIVER_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH", "TRITON_LIBCUDA_PATH")
_ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "passwd", "group", "nsswitch.conf", "alternatives"),
    *("nvidia", "amd-release", "os-release"),
)
PLAIN_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")))
_GPU_DEVICES = ("nvidia*", "nvidia-caps/*", "nvidia-caps-imex-channels/*", "kfd", "dri/render*", "dxg")

TRITON_CACHE = "triton"  # folder of the scratch folder
INDUCTOR_CACHE = "inductor"  # of torch.compile, there too
KEPT_VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH", "HSA_OVERRIDE_GFX_VERSION"),
    *("TRITON_INTERPRET", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"),
    *("LD_LIBRARY_PATH", "CC", "VIRTUAL_ENV", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENV_START_FIELD = 47  # in /proc/self/stat, counted from the field after the name


def readable_paths() -> tuple[Path, ...]:
    """What a candidate may read and execute: interpreter, installed packages, system and driver libraries.

    A root that holds the project's checkout or the user's home is replaced by its other children, so that neither
    can be read. Packages come from directories called site-packages or dist-packages and from the interpreter's own
    prefixes; other entries of sys.path are not granted.
    """
    private = _private()
    wide = [*_SYSTEM, *_drivers()]
    paths = [*_interpreter(), *_installed(), *(part for root in wide for part in _without(root, private))]
    paths += [*(Path("/etc") / name for name in _ETC), *(Path("/sys") / name for name in _SYS), *_proc()]
    return tuple(dict.fromkeys(paths))


def _proc() -> Iterator[Path]:
    """Everything in /proc but other processes: their command lines may hold anything. "self" is the caller."""
    yield from (entry for entry in sorted(Path("/proc").iterdir()) if not entry.name.isdecimal())


def _interpreter() -> Iterator[Path]:
    for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix):
        path = Path(prefix)
        # An interpreter installed straight into "/usr" is covered by _SYSTEM, less what is private there.
        if not any(path.is_relative_to(root) for root in _SYSTEM):
            yield path


def _installed() -> Iterator[Path]:
    for entry in map(Path, filter(None, sys.path)):
        if entry.name in ("site-packages", "dist-packages"):
            yield entry


def _drivers() -> Iterator[Path]:
    named = [*_DRIVERS, *(os.environ.get(name, "") for name in _DRIVER_VARIABLES)]
    named += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    yield from (path for path in map(Path, filter(None, named)) if path.is_absolute() and path != Path("/"))


def _private() -> tuple[Path, ...]:
    """The home, and the checkout when the package was not installed but runs from its source."""
    package = Path(__file__).resolve().parents[1]
    checkout = () if package.parent.name in ("site-packages", "dist-packages") else (package.parent,)
    root = Path("/")  # a service account's home may be "/", and refusing that would leave nothing to run with
    return tuple(path for path in (Path.home().resolve(), *checkout) if path != root)


def _without(root: Path, private: Iterable[Path]) -> Iterator[Path]:
    """The root itself, or, where something private lies in it, its children that hold nothing private."""
    resolved = root.resolve()
    if any(resolved.is_relative_to(secret) for secret in private):
        return
    if not any(secret.is_relative_to(resolved) for secret in private):
        yield root
        return
    with suppress(OSError):
        for child in resolved.iterdir():
            yield from _without(child, private)


def gpu_devices() -> tuple[Path, ...]:
    """The GPU's nodes, one by one. /dev as a whole would give root, even without capabilities, the raw disks.

    They must exist by now: the driver makes some of them (nvidia-uvm) when the judge first uses the GPU.
    """
    return tuple(node for pattern in _GPU_DEVICES for node in Path("/dev").glob(pattern) if not node.is_dir())


def search_path() -> str:
    """The PATH of a candidate, on which Triton looks for a C compiler."""
    return f"{sys.prefix}/bin:{_PATH}"


def scrub_environment(scratch: Path, keep: Iterable[str] = KEPT_VARIABLES) -> None:
    """Leaves only `keep` of the environment, and points everything that writes at scratch.

    Also blanks the block that exec left in memory (/proc/self/environ shows it). Copies elsewhere in a forked
    interpreter's heap stay, so this is a second line: the judge itself is started without keys.
    """
    kept = {name: os.environ[name] for name in keep if name in os.environ}
    _blank_initial_environment()
    os.environ.clear()
    home = str(scratch)
    os.environ.update(kept)
    os.environ.update(
        PATH=search_path(),
        LANG="C.UTF-8",
        HOME=home,
        TMPDIR=home,
        XDG_CACHE_HOME=f"{home}/cache",
        TRITON_HOME=home,
        TRITON_CACHE_DIR=f"{home}/{TRITON_CACHE}",
        TORCHINDUCTOR_CACHE_DIR=f"{home}/{INDUCTOR_CACHE}",
        CUDA_CACHE_PATH=f"{home}/cuda",
        NUMBA_CACHE_DIR=f"{home}/numba",
    )
    tempfile.tempdir = home


def _blank_initial_environment() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[_ENV_START_FIELD : _ENV_START_FIELD + 2])
    if start < end:
        linux.blank_memory(start, end)
