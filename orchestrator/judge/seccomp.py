"""A filter over system calls for what Landlock leaves open: reaching or changing things without opening a file.

Without it, a process of the same user may still chmod the user's files, connect to a socket with a path (Docker's,
say), send UDP, set the judge's limits or CPU affinity, attach its System V memory, or open a namespace of its own.
Owns the list and the filter's code. It is a list of refusals, not of permissions: CUDA, ROCm, gcc and ptxas must run.
"""

from __future__ import annotations

import errno
import platform
import struct

from orchestrator.judge import linux

# (x86_64, aarch64); None where the architecture has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # metadata of files that the user owns
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # other processes
    "connect": (42, 203),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    # memory and messages shared by a key or a name, or counted in nobody's resident size
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    # the kernel itself; io_uring also because it makes calls that no filter sees
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "syslog": (103, 116),
}
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_CLONE, _CLONE3 = (56, 220), (435, 435)
_PRLIMIT64, _SCHED_SETAFFINITY = (302, 261), (203, 122)
_X32_BIT = 0x40000000

_NEW_NAMESPACES = 0x7E020000
_AF_UNIX, _STREAM, _SEQPACKET, _KIND_OF_SOCKET = 1, 1, 5, 0xF

_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NO_SUCH_CALL = 0x00050000 | errno.ENOSYS
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


def supported() -> bool:
    """Whether the list has numbers for this architecture."""
    return platform.machine() in _ARCHITECTURES


def refuse() -> None:
    """Puts the filter on the calling thread and all it starts. Needs no_new_privs; OSError without kernel support."""
    linux.install_filter(_program(*_ARCHITECTURES[platform.machine()]))


def refuse_local_sockets() -> None:
    """Refuses sockets that have a path, which Landlock does not: Docker's, ssh-agent's, the desktop's key ring.

    Pairs of sockets and the network stay. io_uring goes too, which makes sockets that no filter sees.
    """
    column, architecture = _ARCHITECTURES[platform.machine()]
    code = _beginning(column, architecture)
    for name in ("io_uring_setup", "io_uring_enter", "io_uring_register"):
        code += _refused(_REFUSED[name][column])
    code += _when(_SOCKET[column], [_argument(0), _op(_IF_EQUAL, _AF_UNIX, 0, 1), _op(_RETURN, _REFUSE)])
    linux.install_filter(b"".join([*code, _op(_RETURN, _ALLOW)]))


def _beginning(column: int, architecture: int) -> list[bytes]:
    """Refuses calls of another architecture; then the number of the call is loaded."""
    code = [_op(_LOAD, _ARCHITECTURE_AT), _op(_IF_EQUAL, architecture, 1, 0), _op(_RETURN, _REFUSE)]
    code += [_op(_LOAD, _NUMBER_AT)]
    if column == 0:
        code += [_op(_IF_AT_LEAST, _X32_BIT, 0, 1), _op(_RETURN, _REFUSE)]
    return code


def _refused(number: int | None) -> list[bytes]:
    return [] if number is None else [_op(_IF_EQUAL, number, 0, 1), _op(_RETURN, _REFUSE)]


def _program(column: int, architecture: int) -> bytes:
    """The filter's instructions for one architecture; `column` chooses among the call numbers above."""
    code = _beginning(column, architecture)
    for numbers in _REFUSED.values():
        code += _refused(numbers[column])
    # clone3 hides its flags behind a pointer; without it the C library falls back to clone, whose flags can be seen.
    code += [_op(_IF_EQUAL, _CLONE3[column], 0, 1), _op(_RETURN, _NO_SUCH_CALL)]
    code += _when(_CLONE[column], [_argument(0), _op(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _op(_RETURN, _REFUSE)])
    for numbers in (_PRLIMIT64, _SCHED_SETAFFINITY):  # only on oneself: the first argument is a process, 0 the caller
        code += _when(numbers[column], [_argument(0), _op(_IF_EQUAL, 0, 1, 0), _op(_RETURN, _REFUSE)])
    for numbers in (_SOCKET, _SOCKETPAIR):
        code += _when(numbers[column], _unless_connected_unix_socket())
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _unless_connected_unix_socket() -> list[bytes]:
    """Refuses all but AF_UNIX stream and seqpacket: a datagram socket reaches any address without connect."""
    return [
        _argument(0),
        _op(_IF_EQUAL, _AF_UNIX, 1, 0),
        _op(_RETURN, _REFUSE),
        _argument(1),
        _op(_AND, _KIND_OF_SOCKET),
        _op(_IF_EQUAL, _STREAM, 2, 0),
        _op(_IF_EQUAL, _SEQPACKET, 1, 0),
        _op(_RETURN, _REFUSE),
    ]


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Runs the body for one call only. The body may leave another value loaded, so the number is loaded again."""
    return [_op(_IF_EQUAL, number, 0, len(body) + 1), *body, _op(_LOAD, _NUMBER_AT)]


def _argument(index: int) -> bytes:
    """Loads the low half of an argument, on the little-endian machines that the table knows."""
    return _op(_LOAD, _ARGUMENTS_AT + 8 * index)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
