"""Whether a run could work here, found out before one is tried: what is there, what lacks, what to do about it.

Owns the checks, one property each, and their wording. All run side by side and have `LIMIT_S` together: what has not
answered by then is "not known", never "ok". Torch is imported in a process of the judge's (`judge.facts`), with the
judge's environment, so that what is found is what the judge would find. No key is shown and none is sent.

Does not judge a kernel: an `ok` on every line says that a run can start, not that the GPU computes rightly.
"""

from __future__ import annotations

import http.client
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from email.message import Message
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from orchestrator import gpu
from orchestrator.agents import keys, presets
from orchestrator.agents.command import CommandAgent
from orchestrator.config import Settings
from orchestrator.errors import UsageError
from orchestrator.executors.local import judge_environment
from orchestrator.judge import surroundings
from orchestrator.records import SandboxPiece
from orchestrator.text import printable

LIMIT_S = 4.0  # for all checks together
TESTED = {"torch": ((2, 9), (2, 14)), "triton": ((3, 5), (3, 8))}  # from, and before which; as in pyproject.toml
UNTESTED_PYTHON = (3, 13)
_SPARE_BYTES = 100 << 20  # under this not even a run's record is sure to be written
_SAID_CHARS = 300


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    LACKING = "lacking"
    UNNEEDED = "not needed here"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Condition:
    """One property of the machine."""

    name: str
    state: State
    said: str
    advice: str = ""
    essential: bool = False  # the loop cannot do without it

    @property
    def stops(self) -> bool:
        """Whether no run can work here because of it."""
        return self.essential and self.state is State.LACKING


@dataclass(frozen=True)
class Asked:
    """The run that is asked about."""

    settings: Settings
    workspaces: Path

    @property
    def gpu(self) -> bool:
        """Whether its kernels would run on a GPU: the judge's own choice."""
        return self.settings.judge.device != "cpu" and gpu.present()


Check = Callable[[Asked], Condition]


# --- Python and the judged stack


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
        facts = _facts("stack")
    except subprocess.TimeoutExpired:
        return _silent(name, "it may be slow from a cold disk: ask again; the judge itself waits two minutes")
    except _Died as died:
        return Condition(name, State.LACKING, f"importing them failed: {died}", reinstall, essential=True)
    if "failed" in facts:
        said = f"{facts['failed']} cannot be imported: {printable(str(facts['error']), _SAID_CHARS)}"
        return Condition(name, State.LACKING, said, reinstall, essential=True)
    said = f"torch {facts['torch']} (build: {facts['build']}) and triton {facts['triton']} can be imported"
    if asked.gpu and not facts["gpu"]:
        said += ", but this torch cannot use the GPU that the driver shows"
        advice = "install a GPU build of torch that this driver can run, or give --device cpu"
        return Condition(name, State.LACKING, said, advice, essential=True)
    return Condition(name, State.OK, f"{said}, and torch sees the GPU" if asked.gpu else said)


# --- the GPU


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
            result = _run(command, kept | {"PATH": path})
        except OSError as error:
            said = f"{printable(name) or 'CC, which is empty,'} cannot be run: {error.strerror}"
            return Condition("c compiler", State.LACKING, said, advice, essential=True)
        except subprocess.TimeoutExpired:
            return _silent("c compiler", f"try `{printable(name)} --version`")
    if result.returncode:
        said = f"{printable(name)} compiles no Python extension: {_first_error(result.stderr)}"
        return Condition("c compiler", State.LACKING, said, advice, essential=True)
    return Condition("c compiler", State.OK, f"{printable(name)} compiles against Python's headers")


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing"))


def triton_cache(asked: Asked) -> Condition:
    """The folder where Triton keeps what it compiled. Candidates have one of their own, in scratch."""
    if not asked.gpu:
        return Condition("triton cache", State.UNNEEDED, "Triton's interpreter keeps nothing")
    return writable_cache()


def writable_cache() -> Condition:
    """Whether Triton's cache can be written where it would be outside the judge."""
    home = os.environ.get("TRITON_HOME") or str(Path.home())
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path(home) / ".triton" / "cache")
    if problem := _unwritable(folder):
        said = f"{printable(str(folder))} cannot be written: {problem}; verdicts do not need it, running bench.py does"
        return Condition("triton cache", State.LACKING, said, "set TRITON_CACHE_DIR to a folder that can be written")
    return Condition("triton cache", State.OK, f"{printable(str(folder))} can be written")


# --- git, the confinement, the disk


def git(_: Asked) -> Condition:
    """A git that makes a repository as a workspace does."""
    advice = "install git 2.29 or newer"
    if shutil.which("git") is None:
        return Condition("git", State.LACKING, "there is no git on PATH", advice, essential=True)
    with tempfile.TemporaryDirectory() as folder:
        command = ["git", "init", "--quiet", "--bare", "--initial-branch=main", "--object-format=sha1", "--template="]
        try:
            version = _run(["git", "--version"], os.environ).stdout.strip()
            made = _run([*command, f"{folder}/probe.git"], os.environ)
        except subprocess.TimeoutExpired:
            return _silent("git", "try `git --version`")
        except OSError as error:
            return Condition("git", State.LACKING, f"git cannot be run: {error.strerror}", advice, essential=True)
    if made.returncode:
        said = f"{printable(version)} makes no repository: {_first_error(made.stderr)}"
        return Condition("git", State.LACKING, said, advice, essential=True)
    return Condition("git", State.OK, f"{printable(version)} makes repositories")


def sandbox(asked: Asked) -> Condition:
    """The pieces of the confinement, as a throwaway process of the judge's gets them."""
    required = asked.settings.judge.require_sandbox
    try:
        pieces = _facts("sandbox", "gpu" if asked.gpu else "cpu")
    except subprocess.TimeoutExpired:
        return _silent("sandbox", "ask again; a run says which pieces it got")
    except _Died as died:
        return Condition("sandbox", State.LACKING, f"it could not be tried: {died}", "report it", essential=True)
    return confinement([SandboxPiece(**piece) for piece in pieces], required=required)


def confinement(pieces: Sequence[SandboxPiece], *, required: bool) -> Condition:
    """What the pieces come to."""
    missing = [f"{piece.name} ({piece.detail})" for piece in pieces if not piece.held]
    if not missing:
        return Condition("sandbox", State.OK, f"all {len(pieces)} pieces of the confinement hold")
    said = f"{len(pieces) - len(missing)} of {len(pieces)} pieces hold; missing: {'; '.join(missing)}"
    advice = "judge only kernels you trust here, or use Linux 6.12 or newer with Landlock, seccomp and namespaces"
    return Condition("sandbox", State.LACKING, printable(said, 1500), advice, essential=required)


def disk(asked: Asked) -> Condition:
    """Room for the record of a run, and that it can be written."""
    needed = asked.settings.judge.limits.scratch_mb << 20
    return _room("disk", asked.workspaces.absolute(), needed, "give --workspaces DIR on a disk that has room")


def temporary(_: Asked) -> Condition:
    """Room for the temporary folders in which replies become files."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        said = printable(str(error), _SAID_CHARS)
        return Condition(
            "temporary files", State.LACKING, said, "set TMPDIR to a folder that can be written", essential=True
        )
    return _room("temporary files", folder, _SPARE_BYTES, "set TMPDIR to a folder on a disk that has room")


def _room(name: str, folder: Path, needed: int, advice: str) -> Condition:
    shown = printable(str(folder))
    if problem := _unwritable(folder):
        return Condition(name, State.LACKING, f"{shown} cannot be written: {problem}", advice, essential=True)
    free = shutil.disk_usage(_existing(folder)).free
    said = f"{shown}: {free / 2**30:.1f} GiB free"
    if free < needed:
        said += f"; one candidate may write {needed / 2**30:.1f} GiB"
        return Condition(name, State.LACKING, said, advice, essential=free < _SPARE_BYTES)
    return Condition(name, State.OK, said)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _unwritable(folder: Path) -> str:
    """Why a file cannot be made in the folder or, where it is not there yet, in what it would be made in."""
    try:
        with tempfile.NamedTemporaryFile(dir=_existing(folder), prefix=".doctor-"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


# --- models


def anthropic_key(asked: Asked) -> Condition:
    """Whether Anthropic's key is there. Never which."""
    return _key(asked, "anthropic", keys.ANTHROPIC_KEY, keys.AnthropicKeys().api_key, "")


def openai_key(asked: Asked) -> Condition:
    """Whether OpenAI's key is there, or the address of a server that may need none. Never which."""
    provider = keys.OpenAIKeys()
    return _key(asked, "openai", keys.OPENAI_KEY, provider.api_key, keys.OPENAI_URL if provider.base_url else "")


def _key(asked: Asked, agent: str, variable: str, key: SecretStr | None, instead: str) -> Condition:
    name, chosen = f"{agent} key", asked.settings.agent.name == agent
    if not key:
        if instead:
            return Condition(
                name, State.UNNEEDED, f"{variable} is not set; {instead} is, and its server may need no key"
            )
        if chosen:
            said = f"{variable} is not set, and the agent {agent} was asked for"
            return Condition(
                name, State.LACKING, said, f"export {variable}=..., or choose another agent", essential=True
            )
        said = f"{variable} is not set; the agents recorded and inbox need no key"
        return Condition(name, State.UNNEEDED, said, f"to have a model of {agent}'s asked: export {variable}=...")
    try:
        keys.checked_key(key, variable)
    except UsageError as error:
        return Condition(name, State.LACKING, str(error), f"export {variable}=... without spaces", essential=chosen)
    return Condition(name, State.OK, f"{variable} is set (whether the server takes it, its first answer will say)")


def command(asked: Asked) -> Condition:
    """Whether the command-line agent that is asked for could be started, with a key of its own."""
    settings = asked.settings.agent
    if settings.name != "command":
        said = "no command-line agent was asked for"
        return Condition("command", State.UNNEEDED, said, "to have one work: --command claude, or another")
    try:
        preset, where = presets.find(settings.command, settings.preset)
        said = f"{CommandAgent(preset, print, model=settings.model).describe()} ({where})"
    except UsageError as error:
        return Condition("command", State.LACKING, str(error), "", essential=True)
    return Condition("command", State.OK, printable(said, _SAID_CHARS))


def anthropic_server(asked: Asked) -> Condition:
    """Whether Anthropic's server, or the one set in its place, answers."""
    provider = keys.AnthropicKeys()
    wanted = bool(provider.api_key)
    return _server(asked, "anthropic", keys.ANTHROPIC_URL, provider.base_url or keys.ANTHROPIC_ADDRESS, wanted)


def openai_server(asked: Asked) -> Condition:
    """Whether OpenAI's server, or the one set in its place, answers."""
    provider = keys.OpenAIKeys()
    wanted = bool(provider.api_key or provider.base_url)
    return _server(asked, "openai", keys.OPENAI_URL, provider.base_url or keys.OPENAI_ADDRESS, wanted)


def _server(asked: Asked, agent: str, variable: str, url: str, wanted: bool) -> Condition:
    name, chosen = f"{agent} server", asked.settings.agent.name == agent
    if not wanted:
        return Condition(name, State.UNNEEDED, "nothing is set that would have it asked")
    address = _address(url)
    if address is None:
        said = f"{variable} is no http:// or https:// address"  # not shown: it may be a key in the wrong variable
        return Condition(name, State.LACKING, said, f"export {variable}=https://...", essential=chosen)
    problem = _unreachable(address)
    if problem:
        advice = f"start it, or look at the network, the proxy and {variable}; the agents recorded and inbox need none"
        return Condition(name, State.LACKING, f"{address} does not answer: {problem}", advice, essential=chosen)
    return Condition(name, State.OK, f"{address} answers (asked without a key)")


def _address(url: str) -> str | None:
    """Scheme, host and port alone: a path or a query can hold a key, a name and a password stand before the host."""
    try:
        parts = urlsplit(keys.checked_url(url, ""))
        _ = parts.port  # ValueError when it is no number
    except (UsageError, ValueError):
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _unreachable(address: str) -> str:
    """Why no HTTP answer came; "" when one did, whatever its status. Goes through the proxy that is set, if one is."""
    opener = urllib.request.build_opener(_NoRedirect())
    try:
        opener.open(urllib.request.Request(address, method="HEAD"), timeout=LIMIT_S - 1).close()
    except urllib.error.HTTPError as answered:
        answered.close()
    except (OSError, ValueError, http.client.HTTPException) as error:  # no way there, no address, no HTTP
        return printable(str(getattr(error, "reason", "") or error).strip() or type(error).__name__)
    return ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """An answer that points elsewhere is an answer."""


CHECKS: dict[str, Check] = {
    "python": python,
    "torch": torch,
    "triton": triton,
    "torch and triton": imports,
    "gpu": graphics,
    "driver": driver,
    "gpu users": gpu_users,
    "c compiler": compiler,
    "triton cache": triton_cache,
    "git": git,
    "sandbox": sandbox,
    "disk": disk,
    "temporary files": temporary,
    "anthropic key": anthropic_key,
    "command": command,
    "anthropic server": anthropic_server,
    "openai key": openai_key,
    "openai server": openai_server,
}


# --- all of them


def examine(asked: Asked, checks: dict[str, Check] = CHECKS, limit_s: float = LIMIT_S) -> tuple[Condition, ...]:
    """What all checks found, in their order, after `limit_s` at most. What a check raises is a bug, and is raised."""
    answers: queue.SimpleQueue[tuple[str, Condition | BaseException]] = queue.SimpleQueue()

    def ask(name: str, check: Check) -> None:
        try:
            answers.put((name, check(asked)))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put((name, error))

    for name, check in checks.items():
        # A daemon: a driver that hangs must not hold this process.
        threading.Thread(target=ask, args=(name, check), daemon=True).start()
    found: dict[str, Condition] = {}
    deadline = time.monotonic() + limit_s
    while len(found) < len(checks):
        try:
            name, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, BaseException):
            raise answer
        found[name] = answer
    return tuple(found.get(name) or _silent(name, "ask again", limit_s) for name in checks)


def exit_code(conditions: Sequence[Condition]) -> int:
    """0 when nothing was found that stops a run here, 1 when something lacks that it cannot do without."""
    return int(bool(_stops(conditions)))


def to_text(conditions: Sequence[Condition]) -> str:
    """A line for each, and below it what to do; last, what it comes to."""
    lines = []
    for condition in conditions:
        lines.append(f"{condition.state:<16}{condition.name:<18}{condition.said}")
        if condition.advice:
            lines.append(f"{'':<34}-> {condition.advice}")
    return "\n".join([*lines, "", _conclusion(conditions)])


def to_json(conditions: Sequence[Condition]) -> str:
    """The same as JSON: {stopped_by: [name], not_known: [name], checks: [{name, state, said, advice, essential}]}."""
    checks = [asdict(condition) for condition in conditions]
    return json.dumps({"stopped_by": _stops(conditions), "not_known": _unknown(conditions), "checks": checks}, indent=2)


def _conclusion(conditions: Sequence[Condition]) -> str:
    if stops := _stops(conditions):
        return f"No run can work here; first mend: {', '.join(stops)}."
    if unknown := _unknown(conditions):
        return f"Nothing was found that stops a run here; not known: {', '.join(unknown)}."
    return "A run can work here."


def _stops(conditions: Sequence[Condition]) -> list[str]:
    return [condition.name for condition in conditions if condition.stops]


def _unknown(conditions: Sequence[Condition]) -> list[str]:
    return [condition.name for condition in conditions if condition.state is State.UNKNOWN]


def _silent(name: str, advice: str, limit_s: float = LIMIT_S) -> Condition:
    return Condition(name, State.UNKNOWN, f"did not answer within {limit_s:g} s", advice)


class _Died(Exception):
    """A process that was to tell facts ended without telling them."""


def _facts(*arguments: str) -> Any:
    """What `judge.facts` tells, in the judge's environment. Raises TimeoutExpired, and _Died with its last line."""
    command = [sys.executable, "-m", "orchestrator.judge.facts", *arguments]
    result = _run(command, judge_environment())
    if result.returncode:
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "it said nothing")
        how = f"signal {-result.returncode}" if result.returncode < 0 else f"exit code {result.returncode}"
        raise _Died(f"{printable(last.strip(), _SAID_CHARS)} ({how})")
    return json.loads(result.stdout.splitlines()[-1])


def _run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S - 0.3,  # so that its own words come before the common limit
        check=False,
    )
