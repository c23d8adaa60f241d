"""A coding agent that calls no model: a script that works in its folder as real ones do, and one that misbehaves.

    python cli_agent.py HOW [ARGUMENT]

It reads the prompt on its standard input. What it was able to do it prints, as one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KERNEL = "rmsnorm_triton.py"


def tried(action: Callable[[], object]) -> str:
    """What came of it: the error's name, or what it gave."""
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__


def behaves(kernel: str) -> dict[str, object]:
    Path(KERNEL).write_text(Path(kernel).read_text())
    (Path(os.environ["TMPDIR"]) / "notes.txt").write_text("what I tried")
    (Path.home() / ".settings").write_text("mine")
    return {"prompt": sys.stdin.read(), "folder": str(Path.cwd())}


def tests_itself(kernel: str) -> dict[str, object]:
    Path(KERNEL).write_text(Path(kernel).read_text())
    run = subprocess.run(["python", "test_correctness.py", "--quick"], capture_output=True, text=True, check=False)
    return {"code": run.returncode, "last": run.stdout.splitlines()[-1:], "error": run.stderr[-500:]}


def edits_the_tests(kernel: str) -> dict[str, object]:
    behaves(kernel)
    test = Path("test_correctness.py")
    test.write_text(test.read_text().replace("1e-05", "1e+05", 1))
    return {}


def plants(kernel: str) -> dict[str, object]:
    """A conftest, and a repository whose hooks would run for whoever commits here."""
    behaves(kernel)
    Path("conftest.py").write_text("raise SystemExit(0)\n")
    hooks = Path(".git") / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("#!/bin/sh\ntouch planted\n")
    (hooks / "pre-commit").chmod(0o755)
    return {}


def hangs(pids: str) -> dict[str, object]:
    """With a child that left its session, and a child of that one."""
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    inner = f"import os, subprocess, sys, time\n{deaf}"
    inner += (
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
    )
    inner += f"open({pids!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}} {{child.pid}}')\ntime.sleep(600)\n"
    subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    return {}


def looks_for_keys(file: str) -> dict[str, object]:
    """In its environment, in that of every process, in files of the person, through sockets."""
    environments = {}
    for process in Path("/proc").glob("[0-9]*"):
        text = tried(lambda process=process: (process / "environ").read_bytes())  # type: ignore[misc]
        environments[process.name] = text
    memory = tried(lambda: Path(f"/proc/{os.getppid()}/mem").open("rb").close())
    return {
        "own": dict(os.environ),
        "others": environments,
        "memory": memory,
        "file": tried(lambda: Path(file).read_text()),
        "socket": tried(lambda: socket.socket(socket.AF_UNIX)),
        "kill": tried(lambda: os.kill(int(os.environ["OUTSIDER"]), 0)),
    }


def writes_outside(folder: str) -> dict[str, object]:
    """Beside its own folder, in the record above it, in the repository, and through a link."""
    outside = Path(folder)
    Path(KERNEL).symlink_to(outside / "kernel.py")
    repository = next(iter(Path.cwd().parents[3].glob("*.git")), Path.cwd().parents[3])
    return {
        "beside": tried(lambda: (outside / "beside.txt").write_text("here")),
        "through a link": tried(lambda: Path(KERNEL).write_text("here")),
        "record": tried(lambda: (Path.cwd().parent / "report.json").write_text("{}")),
        "repository": tried(lambda: (repository / "config").write_text("")),
        "emptied": tried(lambda: os.truncate(outside / "kept.txt", 0)),
        "removed": tried(lambda: (outside / "kept.txt").unlink()),
        "moved in": tried(lambda: (outside / "kept.txt").rename("kept.txt")),
    }


def tells_its_key(kernel: str) -> dict[str, object]:
    behaves(kernel)
    print("my key is", os.environ["AGENT_KEY"], file=sys.stderr)
    return {"key": os.environ["AGENT_KEY"]}


def writes_its_key(kernel: str) -> dict[str, object]:
    behaves(kernel)
    with Path(KERNEL).open("a") as file:
        file.write(f"# {os.environ['AGENT_KEY']}\n")
    return {}


def keeps_a_history(kernel: str) -> dict[str, object]:
    Path(".agent.history").mkdir()
    (Path(".agent.history") / "chat.md").write_text("hello")
    return behaves(kernel)


def fails(text: str) -> dict[str, object]:
    print(f"Traceback\n{text} {os.environ.get('AGENT_KEY', '')}", file=sys.stderr)
    raise SystemExit(7)


def reaches(port: str) -> dict[str, object]:
    address = ("127.0.0.1", int(port))
    return {
        "tcp": tried(lambda: socket.create_connection(address, 2).close()),
        "udp": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", address)),
    }


def repairs(kernel: str) -> dict[str, object]:
    """Wrong at first; in the second round what it left is there, and it writes the right one."""
    there = Path(KERNEL).is_file()
    text = Path(kernel).read_text() if there else "def rmsnorm_triton(x, w, eps=1e-6):\n    return x\n"
    Path(KERNEL).write_text(text)
    return {"there": there, "prompt": sys.stdin.read()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
