"""What a candidate's process does with its life, one function each, and a judge that reports how each ended.

`python candidates.py [[one-by-one] SCENARIO...]` starts one fork server, runs the scenarios in turn and prints JSON:
the Exit, what the candidate said on its channel, and which processes are left. Stdlib only, so that any user's
interpreter can run it.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from orchestrator.errors import JudgeError
from orchestrator.judge import linux, proctree, sandbox, warden
from orchestrator.judge.forkserver import Child, ForkServer
from orchestrator.judge.sandbox import Confinement, Limits
from orchestrator.tree import remove_tree

SECRET = "planted-7f3a"
MIB = 1 << 20
LIMITS = Limits(memory_bytes=192 * MIB, disk_bytes=32 * MIB, file_bytes=64 * MIB, files=500, processes=20, threads=100)
KILL_AFTER_S = 0.4
DEFAULT_WAIT_S = 10.0

Scenario = Callable[[socket.socket, dict], None]
SCENARIOS: dict[str, Scenario] = {}
KILLED_BY_JUDGE: set[str] = set()


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def endless(function: Scenario) -> Scenario:
    KILLED_BY_JUDGE.add(function.__name__)
    return scenario(function)


def target(sock: socket.socket, config: dict) -> None:
    SCENARIOS[config["scenario"]](sock, config)


def tell(sock: socket.socket, **values: object) -> None:
    sock.sendall(json.dumps(values).encode() + b"\n")


def attempt(action: Callable[[], object]) -> str:
    try:
        return f"allowed: {action()}"
    except OSError as error:
        return f"refused: {error.strerror}"


@scenario
def honest(sock: socket.socket, config: dict) -> None:
    print("a line")
    print("another", file=sys.stderr)
    os.write(config["fds"][0], b"through the passed descriptor")
    limits = {"core": resource.getrlimit(resource.RLIMIT_CORE), "file": resource.getrlimit(resource.RLIMIT_FSIZE)}
    tell(
        sock,
        fds=sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        channel=sock.fileno(),
        passed=config["fds"],
        environ=dict(os.environ),
        cwd=str(Path.cwd()),
        leads_session=os.getsid(0) == os.getpid(),
        limits=limits,
        temporary=tempfile.mkdtemp(),
    )


@scenario
def planted_secret(sock: socket.socket, config: dict) -> None:
    """Ours and the judge's, also after the protection that can be taken back was taken back."""
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
    own = attempt(lambda: SECRET in Path("/proc/self/environ").read_text())
    judge = attempt(lambda: Path(f"/proc/{config['judge']}/environ").read_text())
    server = attempt(lambda: Path(f"/proc/{os.getppid()}/environ").read_text())
    tell(sock, own=own, judge=judge, warden=server)


@scenario
def exit_zero(sock: socket.socket, config: dict) -> None:
    print("PASS")
    os._exit(0)


@scenario
def exit_seven(sock: socket.socket, config: dict) -> None:
    raise SystemExit(7)


@scenario
def raises(sock: socket.socket, config: dict) -> None:
    raise ValueError("no such luck")


@scenario
def segfault(sock: socket.socket, config: dict) -> None:
    ctypes.string_at(0)


@scenario
def kills_itself(sock: socket.socket, config: dict) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@scenario
def burns_cpu(sock: socket.socket, config: dict) -> None:
    while True:
        pass


@scenario
def fork_bomb(sock: socket.socket, config: dict) -> None:
    while True:
        with suppress(OSError):
            os.fork()


@scenario
def hidden_fork_bomb(sock: socket.socket, config: dict) -> None:
    """Each in a session of its own, every parent gone at once."""
    while True:
        with suppress(OSError):
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)


@scenario
def hopper(sock: socket.socket, config: dict) -> None:
    """Never more than two processes, and never the same for long."""
    if os.fork():
        time.sleep(100)
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


@scenario
def thread_bomb(sock: socket.socket, config: dict) -> None:
    threading.stack_size(1 << 16)
    while True:
        try:
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        except RuntimeError:
            time.sleep(0.01)


@scenario
def daemon(sock: socket.socket, config: dict) -> None:
    """Outlives its parents, ignores what can be ignored."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            tell(sock, daemon=os.getpid())
            time.sleep(100)
        os._exit(0)
    os.wait()
    time.sleep(0.1)


@scenario
def memory_bomb(sock: socket.socket, config: dict) -> None:
    held = []
    while True:
        held.append(b"x" * (4 * MIB))


@scenario
def shared_memory_bomb(sock: socket.socket, config: dict) -> None:
    held = []
    while True:
        held.append(mmap.mmap(-1, 4 * MIB))
        held[-1].write(b"x" * (4 * MIB))


@scenario
def memory_in_children(sock: socket.socket, config: dict) -> None:
    for _ in range(10):
        if os.fork() == 0:
            held = b"x" * (40 * MIB)
            time.sleep(100 + len(held))
    time.sleep(100)


@scenario
def disk_bomb(sock: socket.socket, config: dict) -> None:
    for number in range(100):
        Path(f"file-{number}").write_bytes(b"x" * MIB)
    time.sleep(100)


@scenario
def many_files(sock: socket.socket, config: dict) -> None:
    for number in range(1000):
        Path(f"file-{number}").touch()
    time.sleep(100)


@scenario
def deep_folders(sock: socket.socket, config: dict) -> None:
    """Too deep for a path; later than that, nothing can be measured by name."""
    for _ in range(60):
        Path("d" * 100).mkdir()
        os.chdir("d" * 100)
    time.sleep(100)


@scenario
def unlistable_folder(sock: socket.socket, config: dict) -> None:
    Path("closed").mkdir(0o300)
    time.sleep(1)


@scenario
def one_big_file(sock: socket.socket, config: dict) -> None:
    with Path("big").open("wb") as big:
        big.truncate(65 * MIB)


@scenario
def flood(sock: socket.socket, config: dict) -> None:
    os.write(1, b"first\n")
    for _ in range(500):
        os.write(1, b"x" * 65536)
    os.write(1, b"\nlast\n")


@endless
def hangs(sock: socket.socket, config: dict) -> None:
    print("so far")
    sys.stdout.flush()
    for number in range(1, 65):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(100)


@endless
def stops_itself(sock: socket.socket, config: dict) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@endless
def closes_everything(sock: socket.socket, config: dict) -> None:
    os.closerange(0, 1000)
    time.sleep(100)


@scenario
def kill_everything(sock: socket.socket, config: dict) -> None:
    tell(sock, all=attempt(lambda: os.kill(-1, signal.SIGKILL)))
    tell(sock, warden=attempt(lambda: os.kill(os.getppid(), signal.SIGKILL)))
    tell(sock, judge=attempt(lambda: os.kill(config["judge"], signal.SIGKILL)))


LIMITS_OF = {"burns_cpu": Limits(cpu_seconds=1)}


def left_over(server: ForkServer) -> list[int]:
    return [pid for pid in proctree.descendants(os.getpid()) if pid != server.pid]


def run_one(server: ForkServer, name: str) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    reading, writing = os.pipe()
    started = time.monotonic()
    config = {"scenario": name, "judge": os.getpid()}
    child = server.spawn(config, Confinement(folder, limits=LIMITS_OF.get(name, LIMITS)), [writing])
    os.close(writing)
    spawned_s = time.monotonic() - started
    ended = child.wait(KILL_AFTER_S if name in KILLED_BY_JUDGE else DEFAULT_WAIT_S) or child.kill("timeout")
    said = messages(child)
    child.close()
    left = left_over(server) + [pid for pid in [said.get("daemon")] if pid and Path(f"/proc/{pid}").exists()]
    with os.fdopen(reading, "rb") as passed:
        through = passed.read().decode()
    remove_tree(folder)
    pieces = [asdict(piece) for piece in child.pieces]
    seconds = time.monotonic() - started
    return asdict(ended) | {
        "said": said, "left": left, "pieces": pieces, "spawned_s": spawned_s, "seconds": seconds, "through": through
    }  # fmt: skip


def messages(child: Child) -> dict[str, object]:
    said: dict[str, object] = {}
    with child.sock.makefile() as lines:
        for line in lines:
            said |= json.loads(line)
    return said


def refused(action: Callable[[], object]) -> str:
    try:
        return f"no error: {action()}"
    except JudgeError as error:
        return str(error)


def misuse(server: ForkServer) -> dict[str, object]:
    """What the judge may not do, and what it is told."""
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    config, spec = {"scenario": "hangs"}, Confinement(folder)
    child = server.spawn(config, spec)
    second = refused(lambda: server.spawn(config, spec))
    child.close()
    large = refused(lambda: server.spawn(config | {"text": "x" * (1 << 18)}, spec))
    missing = refused(lambda: server.spawn(config, Confinement(Path("/nonexistent/scratch"))))
    server.spawn({"scenario": "exit_zero"}, spec).wait()
    remove_tree(folder)
    return {"second": second, "large": large, "missing": missing}


def death_of_warden() -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    server = ForkServer.start(target)
    child = server.spawn({"scenario": "hangs"}, Confinement(folder))
    os.kill(server.pid, signal.SIGKILL)
    told = refused(lambda: child.wait(5))
    gone = disappears([child.pid])
    again = refused(lambda: server.spawn({"scenario": "honest"}, Confinement(folder)))
    alive = server.alive
    server.close()
    remove_tree(folder)
    return {"told": told, "gone": gone, "again": again, "alive": alive}


def death_of_judge() -> dict[str, object]:
    """A judge that is killed while its candidate has a daemon."""
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    reading, writing = os.pipe()
    if (judge := os.fork()) == 0:
        server = ForkServer.start(target)
        child = server.spawn({"scenario": "daemon_and_hang"}, Confinement(folder))
        line = json.loads(child.sock.makefile().readline())
        os.write(writing, json.dumps([server.pid, child.pid, line["daemon"]]).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    with os.fdopen(reading) as pids:
        found = json.loads(pids.read())
    os.waitpid(judge, 0)
    gone = disappears(found)
    remove_tree(folder)
    return {"pids": found, "gone": gone}


def daemon_and_hang(sock: socket.socket, config: dict) -> None:
    daemon(sock, config)
    time.sleep(100)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def interrupted() -> dict[str, object]:
    """One that hangs; and one that has ended, whose number another process has since."""
    folder = Path(tempfile.mkdtemp(prefix="candidate-"))
    server, descriptors = ForkServer.start(target), open_descriptors()
    child = server.spawn({"scenario": "hangs"}, Confinement(folder))
    child.interrupt()
    ended = child.wait(5)
    child.close()
    with subprocess.Popen(["sleep", "100"]) as bystander:
        child.pid = bystander.pid
        child.interrupt()
        time.sleep(0.2)
        lives = bystander.poll() is None
        bystander.kill()
    left = open_descriptors() - descriptors
    server.close()
    remove_tree(folder)
    return {"ended": asdict(ended) if ended else None, "bystander": lives, "descriptors": left}


def disappears(pids: list[int]) -> bool:
    """Whether none of them runs within a few seconds; a zombie that waits for a parent of ours does not run."""
    for _ in range(100):
        if not any(runs(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def main() -> None:
    if os.environ.get("SECRET") != SECRET:  # in the block that exec leaves in memory, where a fork would show it
        raise SystemExit(subprocess.call([sys.executable, *sys.argv], env=os.environ | {"SECRET": SECRET}))
    sandbox.make_undumpable()
    if sys.argv[1:2] == ["one-by-one"]:  # as on a kernel where Landlock knows no signals
        warden.keep_signals_inside = lambda outsider: False
        print(json.dumps(run_all(sys.argv[2:])))
        return
    results = run_all(sys.argv[1:] or list(SCENARIOS))
    SCENARIOS["daemon_and_hang"] = daemon_and_hang
    deaths = {"death_of_warden": death_of_warden(), "death_of_judge": death_of_judge()}
    print(json.dumps(results | deaths | {"interrupted": interrupted()}))


def run_all(names: list[str]) -> dict[str, object]:
    server = ForkServer.start(target)
    results: dict[str, object] = {name: run_one(server, name) for name in names}
    results |= {"misuse": misuse(server), "alive": server.alive}
    server.close()
    return results


if __name__ == "__main__":
    main()
