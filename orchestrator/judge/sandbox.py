"""Confines the calling process for good, and says piece by piece what this machine gave.

Owns the order of the steps, what each is called, and the words for what a missing one lets through. A missing piece
is reported, never passed over; whether to go on without it is the caller's decision. Stdlib only: it runs in a child
forked from a process that has torch loaded, before any of the candidate's code.

What stays open with every piece held, because nothing here covers it:
  - names, sizes and times of files anywhere, and which processes exist (stat);
  - shared memory that no process has mapped any more is in nobody's resident size; what meets it is the kernel's OOM
    killer, which takes the candidate first;
  - a file deleted while open takes space that no walk through scratch sees, until the candidate ends.
No PID namespace: CUDA fails in one. No change of user: an interpreter under a home of mode 700 could not import.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.judge import landlock, linux, seccomp, surroundings
from orchestrator.judge.landlock import EVERYTHING, READ, Right, Rule
from orchestrator.judge.surroundings import readable_paths, scrub_environment
from orchestrator.records import SandboxPiece

__all__ = ["Confinement", "Limits", "confine", "make_undumpable", "probe", "readable_paths", "scrub_environment"]

_SCRATCH_RIGHTS = EVERYTHING & ~(Right.MAKE_CHAR | Right.MAKE_BLOCK | Right.IOCTL_DEV)
_DEVICE_RIGHTS = Right.READ_FILE | Right.WRITE_FILE | Right.IOCTL_DEV
_NO_EXECUTE = tuple(map(Path, ("/proc", "/sys", "/etc")))
_ADDRESS_SPACE_MARGIN = 2  # times the memory limit: pages touched are what counts, this stops wild reservations
_CPU_GRACE_S = 5


@dataclass(frozen=True)
class Limits:
    """How much a candidate may use. Memory, processes and scratch are watched by the warden, the rest by the kernel."""

    memory_bytes: int = 4 << 30  # resident, over all its processes
    disk_bytes: int = 2 << 30  # scratch as a whole
    file_bytes: int = 1 << 30  # any one file
    files: int = 50_000
    cpu_seconds: int = 900  # a process
    processes: int = 32
    threads: int = 4096  # over all its processes
    open_files: int = 4096
    shared_bytes: int = 0  # address space for the judge's buffers, on top of the candidate's own


@dataclass(frozen=True)
class Confinement:
    """What a candidate may touch."""

    scratch: Path  # the only place it may write; exists, and is the caller's to remove
    readable: tuple[Path, ...] = ()  # beyond `readable_paths()`
    device: bool = False  # a GPU is used: its nodes are opened, and address space is not limited
    limits: Limits = field(default_factory=Limits)

    def to_json(self) -> dict[str, Any]:
        """As JSON values, for the way to the warden."""
        readable = [str(path) for path in self.readable]
        return asdict(self) | {"scratch": str(self.scratch), "readable": readable}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Confinement:
        """What `to_json` gave."""
        readable = tuple(map(Path, values["readable"]))
        return cls(Path(values["scratch"]), readable, values["device"], Limits(**values["limits"]))


def make_undumpable() -> None:
    """Refuses this process's memory and environment to others of the same user. For orchestrator, judge and warden.

    Lost at exec and given on to forks. Root with CAP_SYS_PTRACE is not held by it; a candidate has no capabilities.
    """
    linux.prctl(linux.PR_SET_DUMPABLE, 0)


def keep_signals_inside(outsider: int, *, tcp: bool = False) -> bool:
    """Leaves the calling process able to signal only itself and what it forks from now on; False where Landlock cannot.

    Then `kill(-1)` ends exactly its descendants. That is too dangerous to take on trust, so it is tried on `outsider`,
    a process of the same user. TCP is refused from then on unless `tcp`.
    """
    version = landlock.abi()
    if version < landlock.SCOPE_ABI:
        return False
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    try:
        # REFER everywhere: Landlock refuses it unless granted, and the candidate's own rules cannot give it back.
        landlock.restrict([Rule(Path("/"), Right.REFER)], version, Right.REFER, tcp=tcp)
        os.kill(outsider, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def confine(spec: Confinement) -> tuple[SandboxPiece, ...]:
    """Confines the calling process, which must have one thread. Cannot be undone.

    Raises OSError only for what a Linux of the last decade cannot refuse; a piece that it can is returned as not held.
    """
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # a forked undumpable process cannot write its own /proc files, used below
    pieces = [_own_session(), _first_for_the_oom_killer(), no_network()]
    _set_limits(spec)
    pieces += [SandboxPiece("limits", True), _no_capabilities(), _no_new_privileges()]
    make_undumpable()
    pieces += [SandboxPiece("undumpable", True), *_landlock(spec), _system_calls()]
    return tuple(pieces)


def probe(*, device: bool = False) -> tuple[SandboxPiece, ...]:
    """What this machine gives, found out by a throwaway child that confines itself to an empty folder."""
    scratch = Path(tempfile.mkdtemp(prefix="sandbox-probe-"))
    reading, writing = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            _answer_probe(Confinement(scratch, device=device), writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            text = answers.read()
        os.waitpid(child, 0)
    finally:
        shutil.rmtree(scratch)
    return pieces_from_json(text)


def _answer_probe(spec: Confinement, writing: int) -> None:
    """The throwaway child; never returns into the caller's code."""
    try:
        os.write(writing, pieces_to_json(confine(spec)))
    except OSError as error:
        os.write(writing, pieces_to_json((SandboxPiece("confinement", False, f"could not be applied: {error}"),)))
    finally:
        os._exit(0)


def pieces_to_json(pieces: tuple[SandboxPiece, ...]) -> bytes:
    """The pieces as one line. Small enough for a pipe to take at once."""
    return json.dumps([asdict(piece) for piece in pieces]).encode()


def pieces_from_json(text: bytes) -> tuple[SandboxPiece, ...]:
    """What `pieces_to_json` wrote. ValueError when it was cut off."""
    return tuple(SandboxPiece(**values) for values in json.loads(text))


def _own_session() -> SandboxPiece:
    if os.getsid(0) != os.getpid():
        os.setsid()
    return SandboxPiece("session", True)


def _first_for_the_oom_killer() -> SandboxPiece:
    name = "first for the OOM killer"
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError as error:
        return SandboxPiece(
            name, False, f"{error.strerror}; when memory runs out the kernel may kill the judge instead"
        )
    return SandboxPiece(name, True)


def no_network() -> SandboxPiece:
    """A network namespace of its own, in which there is nothing to reach."""
    name = "network namespace"
    try:
        linux.unshare(linux.CLONE_NEWNET)
    except OSError as error:
        if not _unshared_as_user():
            return SandboxPiece(
                name,
                False,
                f"refused ({error.strerror}; user namespaces too): without it the system call filter alone "
                "stops UDP and sockets of other families",
            )
    return SandboxPiece(name, True)


def _unshared_as_user() -> bool:
    """A network namespace inside a user namespace in which the user stays who they are."""
    user, group = os.geteuid(), os.getegid()
    try:
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


def _set_limits(spec: Confinement) -> None:
    limits = spec.limits
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + _CPU_GRACE_S)
    if os.getuid() != 0:  # it does not hold root; the warden counts for both
        _lower(resource.RLIMIT_NPROC, _tasks_of_user() + limits.threads)
    _lower(resource.RLIMIT_MSGQUEUE, 0)
    if not spec.device:  # CUDA reserves address space by the terabyte
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, mapped + limits.shared_bytes + _ADDRESS_SPACE_MARGIN * limits.memory_bytes)


def _lower(kind: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit, never above what was inherited: raising needs a capability."""
    ceiling = resource.getrlimit(kind)[1]
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(kind, (soft, hard))


def _tasks_of_user() -> int:
    """How many threads this user runs already: the kernel's count for RLIMIT_NPROC includes them."""
    user, tasks = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            tasks += int(status["Threads"]) if int(status["Uid"].split()[0]) == user else 0
    return tasks


def _no_capabilities() -> SandboxPiece:
    linux.drop_capabilities()
    return SandboxPiece("no capabilities", True)


def _no_new_privileges() -> SandboxPiece:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    return SandboxPiece("no new privileges", True)


def _landlock(spec: Confinement) -> Iterator[SandboxPiece]:
    """File rules, TCP and scopes, as far as the kernel's ABI goes."""
    version = landlock.abi()
    files = version >= landlock.REFER_ABI
    refused = ""
    if version:
        try:
            landlock.restrict(_rules(spec) if files else (), version, None if files else Right(0))
        except OSError as error:
            refused, version, files = f" ({error.strerror})", 0, False
    kernel = f"Landlock ABI {version} here{refused}; " if version else f"no Landlock here{refused}; "
    for name, needed, gap in _LANDLOCK_PIECES:
        held = version >= needed
        yield SandboxPiece(name, held, "" if held else f"{kernel}ABI {needed} is needed: {gap}")


_LANDLOCK_PIECES = (
    (
        "file rules",
        landlock.REFER_ABI,
        "the candidate can read and write whatever the user can (ABI 1 cannot allow Triton's rename in its cache)",
    ),
    ("truncation refused", landlock.TRUNCATE_ABI, "the candidate can empty files that the user may write"),
    ("TCP refused", landlock.TCP_ABI, "only the network namespace and the system call filter stop TCP"),
    ("device ioctl refused", landlock.IOCTL_ABI, "ioctl works on every device node that can be opened"),
    ("signals kept inside", landlock.SCOPE_ABI, "the candidate can kill the user's other processes, the judge too"),
    ("abstract sockets kept inside", landlock.SCOPE_ABI, "only the system call filter stops abstract sockets"),
)


def _rules(spec: Confinement) -> Iterator[Rule]:
    yield Rule(spec.scratch, _SCRATCH_RIGHTS)
    for path in (*readable_paths(), *spec.readable):
        plain = any(path.is_relative_to(root) for root in _NO_EXECUTE)
        yield Rule(path, READ if plain else READ | Right.EXECUTE)
    for node in surroundings.PLAIN_DEVICES:
        yield Rule(node, Right.READ_FILE | Right.WRITE_FILE)
    if spec.device:
        yield from _device_rules()


def _device_rules() -> Iterator[Rule]:
    """What a GPU needs. Seen on an H200: CUDA wants its nodes with ioctl, and names its threads through its own /proc.

    It does not need /dev/shm, where other programs' shared memory lies; ROCm's runtime does.
    """
    for node in surroundings.gpu_devices():
        yield Rule(node, _DEVICE_RIGHTS)
    yield Rule(Path("/proc/self/task"), Right.WRITE_FILE | Right.TRUNCATE)
    if Path("/dev/kfd").exists():
        yield Rule(Path("/dev/shm"), _SCRATCH_RIGHTS)


def _system_calls() -> SandboxPiece:
    name = "system call filter"
    gap = (
        "the candidate can chmod the user's files, connect to sockets that have a path, "
        "and change the limits and the CPU affinity of the user's other processes"
    )
    if not seccomp.supported():
        return SandboxPiece(name, False, f"no list for this architecture: {gap}")
    try:
        seccomp.refuse()
    except OSError as error:
        return SandboxPiece(name, False, f"{error.strerror}: {gap}")
    return SandboxPiece(name, True)
