"""Python, torch and triton: which versions, and whether the judge can import them.

Torch is imported in a process of the judge's (`judge.facts`), with the judge's environment.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata

from orchestrator.doctor.condition import SAID_CHARS, Asked, Condition, State, silent
from orchestrator.doctor.processes import Died, facts_of
from orchestrator.text import printable

TESTED = {"torch": ((2, 9), (2, 14)), "triton": ((3, 5), (3, 8))}  # from, and before which; as in pyproject.toml
UNTESTED_PYTHON = (3, 13)


def python(_: Asked) -> Condition:
    """The interpreter, by its version and its system: the confinement is made of what Linux has."""
    said = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    if sys.platform != "linux":
        return Condition(
            "python", State.LACKING, said, "run on Linux; on another system, in a container", essential=True
        )
    if sys.version_info >= UNTESTED_PYTHON:  # an older one cannot import this file
        return Condition("python", State.LACKING, f"{said}; tested are 3.11 and 3.12", "use Python 3.12")
    return Condition("python", State.OK, said)


def torch(_: Asked) -> Condition:
    """The installed version of torch, by its metadata."""
    return installed("torch", *TESTED["torch"])


def triton(_: Asked) -> Condition:
    """The installed version of triton, by its metadata."""
    return installed("triton", *TESTED["triton"])


def installed(name: str, low: tuple[int, int], high: tuple[int, int]) -> Condition:
    """A distribution's version by its metadata, against the versions that were tested."""
    version = _version(name)
    bounds = f"{low[0]}.{low[1]} up to, not including, {high[0]}.{high[1]}"
    advice = f"pip install '{name}>={low[0]}.{low[1]},<{high[0]}.{high[1]}'"
    if version is None:
        return Condition(name, State.LACKING, f"{name} is not installed", advice, essential=True)
    said = f"{name} {printable(version)} is installed"
    try:
        parts = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return Condition(name, State.UNKNOWN, f"{said}, a version that cannot be compared with {bounds}", advice)
    if not low <= parts < high:
        return Condition(name, State.LACKING, f"{said}; tested are {bounds}", advice)
    return Condition(name, State.OK, said)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def imports(asked: Asked) -> Condition:
    """Whether torch and triton can be imported as the judge does it, and torch sees the GPU that the driver shows."""
    name = "torch and triton"
    reinstall = "reinstall torch and triton; `python -c 'import torch, triton'` shows the whole error"
    try:
        facts = facts_of("stack")
    except subprocess.TimeoutExpired:
        return silent(name, "it may be slow from a cold disk: ask again; the judge itself waits two minutes")
    except Died as died:
        return Condition(name, State.LACKING, f"importing them failed: {died}", reinstall, essential=True)
    if "failed" in facts:
        said = f"{facts['failed']} cannot be imported: {printable(str(facts['error']), SAID_CHARS)}"
        return Condition(name, State.LACKING, said, reinstall, essential=True)
    said = f"torch {facts['torch']} (build: {facts['build']}) and triton {facts['triton']} can be imported"
    if asked.gpu and not facts["gpu"]:
        said += ", but this torch cannot use the GPU that the driver shows"
        advice = "install a GPU build of torch that this driver can run, or give --device cpu"
        return Condition(name, State.LACKING, said, advice, essential=True)
    return Condition(name, State.OK, f"{said}, and torch sees the GPU" if asked.gpu else said)
