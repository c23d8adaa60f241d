"""The few system calls that Python's standard library lacks, as functions that raise OSError.

Owns numbers and struct layouts of Linux; decides nothing. Stdlib only: it runs in a forked child before anything else.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def checked(result: int) -> int:
    """The result of a C call, or its errno as an OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """A raw system call. Integers are passed as longs, bytes as pointers."""
    passed = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    return checked(_libc.syscall(ctypes.c_long(number), *passed))


def prctl(option: int, *arguments: int) -> int:
    """prctl(2); all arguments not given are zero, as newer options demand."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    return checked(_libc.prctl(option, *(ctypes.c_ulong(a) for a in padded)))


def install_filter(program: bytes) -> None:
    """Puts a seccomp filter (an array of struct sock_filter) on the calling thread and all it will start."""
    set_mode_filter, pr_set_seccomp = 2, 22
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    checked(_libc.prctl(pr_set_seccomp, ctypes.c_ulong(set_mode_filter), ctypes.c_char_p(header), 0, 0))


def unshare(flags: int) -> None:
    """unshare(2)."""
    checked(_libc.unshare(flags))


def last_capability() -> int:
    """The number of the highest capability that the running kernel knows."""
    return int(Path("/proc/sys/kernel/cap_last_cap").read_text())


def drop_capabilities() -> None:
    """Empties the bounding, ambient, effective, permitted and inheritable sets.

    Without CAP_SETPCAP the bounding set stays; no_new_privs then keeps an exec from using it.
    """
    for capability in range(last_capability() + 1):
        with suppress(PermissionError):
            prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    checked(_libc.capset(struct.pack("Ii", CAPABILITY_VERSION_3, 0), bytes(24)))


def blank_memory(start: int, end: int) -> None:
    """Overwrites a range of this process's own memory with zeros."""
    ctypes.memset(start, 0, end - start)


def readable(descriptors: Iterable[int], timeout_s: float | None) -> set[int]:
    """Which descriptors have something to read, or have ended, within the time. Without select's limit of 1024."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(None if timeout_s is None else 1000 * timeout_s)}
