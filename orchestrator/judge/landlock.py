"""Landlock through its three system calls: which file, network and scope rules a process puts on itself.

Owns the kernel's interface and its versions (ABIs). Which path gets which right is the caller's business (`sandbox`).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from orchestrator.judge.linux import syscall

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1

REFER_ABI, TRUNCATE_ABI, TCP_ABI, IOCTL_ABI, SCOPE_ABI = 2, 3, 4, 5, 6


class Right(IntFlag):
    """What can be done with a file or beneath a directory."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13  # rename or link into another directory; Triton's cache does
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15  # CUDA and ROCm live on it


READ = Right.READ_FILE | Right.READ_DIR
EVERYTHING = Right((1 << 16) - 1)
_OF_A_FILE = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE | Right.IOCTL_DEV


@dataclass(frozen=True)
class Rule:
    """Grants rights on a file, or on a directory and all beneath it."""

    path: Path
    rights: Right


def abi() -> int:
    """The running kernel's Landlock version; 0 where there is none or it is switched off."""
    try:
        return syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def file_rights(version: int) -> Right:
    """All file rights that a kernel of this ABI can refuse."""
    rights = EVERYTHING
    for right, since in ((Right.REFER, REFER_ABI), (Right.TRUNCATE, TRUNCATE_ABI), (Right.IOCTL_DEV, IOCTL_ABI)):
        if version < since:
            rights &= ~right
    return rights


def restrict(rules: Iterable[Rule], version: int, handled: Right | None = None, *, tcp: bool = False) -> None:
    """Confines the calling thread, and all it starts, for good; needs no_new_privs or CAP_SYS_ADMIN.

    Every handled file right (all, unless said) is refused except where a rule grants it. Moving a file to another
    folder (REFER) is refused even when it is not handled, so whoever leaves it out must mean that. TCP bind and
    connect are refused (ABI 4) unless `tcp`; signals and abstract sockets stay within the confined processes (ABI 6).
    A rule for a path that does not exist grants nothing.
    """
    handled = file_rights(version) if handled is None else handled
    ports = 0b11 if version >= TCP_ABI and not tcp else 0
    scopes = 0b11 if version >= SCOPE_ABI else 0
    attributes = struct.pack("QQQ", handled, ports, scopes)
    ruleset = syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for rule in rules:
            _add(ruleset, rule, handled)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, rule: Rule, handled: Right) -> None:
    try:
        target = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # what cannot be reached needs no right
    try:
        allowed = rule.rights & handled
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            allowed &= _OF_A_FILE
        if allowed:
            syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", allowed, target), 0)
    finally:
        os.close(target)
