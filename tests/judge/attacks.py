"""What a hostile kernel file tries, one function each, and a runner that says what came of it.

`python attacks.py confined|free SECRET` plays the judge: it plants secrets, forks a child, and the child tries each
attack in a process of its own, confined or not. The answers come out as JSON. A function returns when the attack
succeeded and raises OSError when it was refused. Stdlib only, so that any user's interpreter can run it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.judge import linux, sandbox
from orchestrator.tree import remove_tree

SECRET = "planted-7f3a"
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Scene:
    """Where the secrets are."""

    judge: int
    memory: int  # address of the secret in the judge
    outside: Path  # a folder of the same user
    scratch: Path
    port: int  # a loopback TCP listener, and UDP on the same number
    abstract: str


Attack = Callable[[Scene], None]
ATTACKS: dict[str, Attack] = {}
ROOT_ONLY: set[str] = set()  # refused to a user anyway


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__] = function
    return function


def root_attack(function: Attack) -> Attack:
    ROOT_ONLY.add(function.__name__)
    return attack(function)


def expect_secret(data: bytes | str) -> None:
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    if SECRET not in text:
        raise OSError(errno.ENODATA, "read, but the secret was not there")


def call(result: int) -> int:
    return linux.checked(result)


# The judge's process


@attack
def read_environ(scene: Scene) -> None:
    expect_secret(Path(f"/proc/{scene.judge}/environ").read_bytes())


@attack
def read_memory_file(scene: Scene) -> None:
    with Path(f"/proc/{scene.judge}/mem").open("rb", buffering=0) as memory:
        memory.seek(scene.memory)
        expect_secret(memory.read(32))


@attack
def process_vm_readv(scene: Scene) -> None:
    buffer = ctypes.create_string_buffer(32)
    ours = struct.pack("QQ", ctypes.addressof(buffer), 32)
    theirs = struct.pack("QQ", scene.memory, 32)
    call(libc.process_vm_readv(scene.judge, ours, 1, theirs, 1, 0))
    expect_secret(buffer.raw)


@attack
def ptrace_attach(scene: Scene) -> None:
    attach, detach = 16, 17
    call(libc.ptrace(attach, scene.judge, None, None))
    os.waitpid(scene.judge, 0x40000000)
    call(libc.ptrace(detach, scene.judge, None, None))


@attack
def read_command_line(scene: Scene) -> None:
    expect_secret(Path(f"/proc/{scene.judge}/cmdline").read_bytes())


@attack
def list_processes(scene: Scene) -> None:
    next(Path("/proc").iterdir())


@attack
def signal_judge(scene: Scene) -> None:
    os.kill(scene.judge, 0)


@attack
def pidfd_signal_judge(scene: Scene) -> None:
    signal.pidfd_send_signal(os.pidfd_open(scene.judge), signal.SIGCONT)


@attack
def limit_judge(scene: Scene) -> None:
    prlimit64 = 302 if os.uname().machine == "x86_64" else 261
    linux.syscall(prlimit64, scene.judge, 4, struct.pack("QQ", 0, 0), None)


@attack
def pin_judge(scene: Scene) -> None:
    os.sched_setaffinity(scene.judge, os.sched_getaffinity(0))


@attack
def renice_judge(scene: Scene) -> None:
    os.setpriority(os.PRIO_PROCESS, scene.judge, os.getpriority(os.PRIO_PROCESS, 0))


# Files outside


@attack
def read_secret_file(scene: Scene) -> None:
    expect_secret((scene.outside / "secret").read_text())


@attack
def list_folder(scene: Scene) -> None:
    next(scene.outside.iterdir())


@root_attack
def read_shadow(scene: Scene) -> None:
    Path("/etc/shadow").read_text()


@attack
def read_own_package(scene: Scene) -> None:
    Path(sandbox.__file__).read_text()


@attack
def create_file(scene: Scene) -> None:
    (scene.outside / "new").write_text("x")


@attack
def append_to_file(scene: Scene) -> None:
    with (scene.outside / "target").open("a") as target:
        target.write("x")


@attack
def truncate_file(scene: Scene) -> None:
    os.truncate(scene.outside / "target", 1)


@attack
def move_out(scene: Scene) -> None:
    (scene.scratch / "mine").write_text("x")
    (scene.scratch / "mine").rename(scene.outside / "theirs")


@attack
def move_in(scene: Scene) -> None:
    (scene.outside / "movable").rename(scene.scratch / "movable")


@attack
def link_in(scene: Scene) -> None:
    (scene.scratch / "linked").hardlink_to(scene.outside / "target")


@attack
def unlink_file(scene: Scene) -> None:
    (scene.outside / "deletable").unlink()


@attack
def make_folder(scene: Scene) -> None:
    (scene.outside / "folder").mkdir()


@attack
def make_symlink(scene: Scene) -> None:
    (scene.outside / "symlink").symlink_to("/")


@attack
def chmod_file(scene: Scene) -> None:
    (scene.outside / "target").chmod(0o666)


@attack
def chown_file(scene: Scene) -> None:
    os.chown(scene.outside / "target", os.getuid(), os.getgid())


@attack
def touch_file(scene: Scene) -> None:
    os.utime(scene.outside / "target", (1, 1))


@attack
def set_attribute(scene: Scene) -> None:
    os.setxattr(scene.outside / "target", "user.x", b"x")


@attack
def write_shared_memory(scene: Scene) -> None:
    path = Path(f"/dev/shm/attack-{os.getpid()}")
    path.write_text("x")
    path.unlink()


# The machine


@root_attack
def write_kernel_log(scene: Scene) -> None:
    os.close(os.open("/dev/kmsg", os.O_WRONLY))


@root_attack
def read_raw_disk(scene: Scene) -> None:
    disk = next((node for node in sorted(Path("/dev").iterdir()) if node.is_block_device()), None)
    if disk is None:
        raise FileNotFoundError(errno.ENOENT, "this machine shows no block device")
    os.close(os.open(disk, os.O_RDONLY | os.O_NONBLOCK))


@root_attack
def read_physical_memory(scene: Scene) -> None:
    os.close(os.open("/dev/mem", os.O_RDONLY))


@root_attack
def set_core_pattern(scene: Scene) -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@root_attack
def trigger_sysrq(scene: Scene) -> None:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))


@root_attack
def set_huge_pages(scene: Scene) -> None:
    os.close(os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY))


@attack
def survive_oom(scene: Scene) -> None:
    Path("/proc/self/oom_score_adj").write_text("1000")


@root_attack
def make_device(scene: Scene) -> None:
    os.mknod(scene.scratch / "null", 0o20600, os.makedev(1, 3))


@root_attack
def mount_something(scene: Scene) -> None:
    call(libc.mount(b"none", os.fsencode(scene.scratch), b"tmpfs", 0, None))
    call(libc.umount2(os.fsencode(scene.scratch), 2))


@root_attack
def become_other_user(scene: Scene) -> None:
    os.setuid(os.getuid() + 1)


@root_attack
def change_root(scene: Scene) -> None:
    os.chroot(scene.scratch)


@attack
def new_user_namespace(scene: Scene) -> None:
    linux.unshare(linux.CLONE_NEWUSER)


@attack
def io_uring(scene: Scene) -> None:
    os.close(linux.syscall(425, 4, bytes(120)))


@attack
def anonymous_file(scene: Scene) -> None:
    os.close(os.memfd_create("x"))


@attack
def system_v_memory(scene: Scene) -> None:
    segment = call(libc.shmget(0, 4096, 0o1600))
    call(libc.shmctl(segment, 0, None))


@attack
def session_keyring(scene: Scene) -> None:
    keyctl = 250 if os.uname().machine == "x86_64" else 219
    linux.syscall(keyctl, 0, -3, 1, 0, 0)


# Other programs


@attack
def connect_tcp(scene: Scene) -> None:
    socket.create_connection(("127.0.0.1", scene.port), 2).close()


@attack
def send_udp(scene: Scene) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", scene.port))


@attack
def listen_tcp(scene: Scene) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))


@attack
def connect_abstract(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(scene.abstract)


@attack
def connect_path(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(scene.outside / "stream"))


@attack
def send_datagram_to_path(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", str(scene.outside / "datagram"))


@attack
def send_datagram_from_pair(scene: Scene) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", str(scene.outside / "datagram"))


# What an honest kernel file needs, and must get: these return when it works


def write_in_scratch(scene: Scene) -> None:
    (scene.scratch / "a").mkdir()
    (scene.scratch / "a" / "file").write_text("x")
    (scene.scratch / "a" / "file").replace(scene.scratch / "file")  # across folders, as Triton's cache does


def compile_and_load(scene: Scene) -> None:
    source, library = scene.scratch / "f.c", scene.scratch / "f.so"
    source.write_text("int f(void) { return 42; }")
    subprocess.run(["gcc", "-shared", "-o", library, source], check=True, timeout=30)
    if ctypes.CDLL(str(library)).f() != 42:
        raise OSError(errno.EIO, "the library does not work")


def run_interpreter(scene: Scene) -> None:
    subprocess.run([sys.executable, "-I", "-c", "import json, ssl, ctypes"], check=True, timeout=30)


def use_locks_and_pipes(scene: Scene) -> None:
    with (scene.scratch / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    theirs.recv(1)


NEEDED: dict[str, Attack] = {
    function.__name__: function
    for function in (write_in_scratch, compile_and_load, run_interpreter, use_locks_and_pipes)
}


def outcome(function: Attack, scene: Scene) -> str:
    """What came of it, tried in a process of its own: "allowed", "refused: why" or "broken: traceback"."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            function(scene)
            answer = "allowed"
        except OSError as error:
            answer = f"refused: {error.strerror or error}"
        except BaseException:  # noqa: BLE001  the last frame of a fork
            answer = f"broken: {traceback.format_exc()}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return answer or "died"


def status_fields() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def try_all(scene: Scene, confined: bool) -> dict[str, object]:
    """In the child: confines itself if asked to, and tries everything."""
    pieces: tuple[object, ...] = ()
    if confined:
        sandbox.scrub_environment(scene.scratch)
        pieces = tuple(vars(piece) for piece in sandbox.confine(sandbox.Confinement(scene.scratch)))
    tried = ATTACKS if confined or os.getuid() == 0 else {n: f for n, f in ATTACKS.items() if n not in ROOT_ONLY}
    answers = {name: outcome(function, scene) for name, function in tried.items()}
    needed = {name: outcome(function, scene) for name, function in NEEDED.items()}
    return {"pieces": pieces, "attacks": answers, "needed": needed, "status": status_fields()}


def main() -> None:
    confined = sys.argv[1] == "confined"
    os.environ["SECRET"] = SECRET
    folder = Path(tempfile.mkdtemp(prefix="attacks-"))
    outside, inside = folder / "outside", folder / "scratch"
    outside.mkdir()
    inside.mkdir()
    for name in ("secret", "target", "movable", "deletable"):
        (outside / name).write_text(SECRET)
    buffer = ctypes.create_string_buffer(64)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(tcp.getsockname())
        local = [
            socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
        ]
        abstract = f"\0attacks-{os.getpid()}"
        for listener, name in zip(local, (abstract, str(outside / "stream"), str(outside / "datagram")), strict=True):
            listener.bind(name)
        local[0].listen()
        local[1].listen()
        scene = Scene(os.getpid(), ctypes.addressof(buffer), outside, inside, tcp.getsockname()[1], abstract)
        report(scene, confined, buffer)
    remove_tree(folder)


def report(scene: Scene, confined: bool, buffer: ctypes.Array[ctypes.c_char]) -> None:
    """Forks the child that tries; changes the secret in memory only after the fork, so that a copy is not a success."""
    go_reading, go_writing = os.pipe()
    if confined:
        sandbox.make_undumpable()
    if os.fork() == 0:
        with suppress(OSError):
            os.read(go_reading, 1)
        print(json.dumps(try_all(scene, confined)), flush=True)
        os._exit(0)
    buffer.value = SECRET.encode()
    os.write(go_writing, b"x")
    os.wait()


if __name__ == "__main__":
    main()
