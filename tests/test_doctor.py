"""The doctor: what it finds here, and that each lack is found, said and acted on. Real parts, some of them broken."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator import config, doctor
from orchestrator.doctor import disk, graphics, models, stack, tools
from orchestrator.doctor.condition import Asked, Condition, State
from orchestrator.records import SandboxPiece

ROOT = Path(__file__).parent.parent
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
SECRET = "sk-this-must-stay-hidden-0123456789"


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in (*KEYS, *PROXIES)} | variables
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (variables.get("PYTHONPATH"), str(ROOT))))
    command = [sys.executable, "-m", "orchestrator", "doctor", "--device", "cpu", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def found(result: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert not result.stderr, result.stderr
    return {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def asked(workspaces: Path = Path("workspaces"), *overrides: str) -> Asked:
    return Asked(config.load(None, ("judge.device=cpu", *overrides)), workspaces)


def fake_torch(folder: Path, body: str) -> str:
    """A folder whose torch does what is said instead of being torch."""
    (folder / "fake" / "torch").mkdir(parents=True)
    (folder / "fake" / "torch" / "__init__.py").write_text(body)
    return str(folder / "fake")


def test_where_the_loop_works_it_says_so(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in doctor.CHECKS:
        assert any(line[16:].startswith(f"{name} ") for line in result.stdout.splitlines()), name
    # On a machine under load the import of torch may take longer than it is waited for.
    assert result.stdout.splitlines()[-1].startswith(("A run can work here.", "Nothing was found that stops a run"))
    assert list(tmp_path.iterdir()) == [], "it looks, and leaves nothing behind"


def test_json_holds_the_same(tmp_path: Path) -> None:
    result = run(tmp_path, "--json")
    checks = found(result)
    assert json.loads(result.stdout)["stopped_by"] == []
    assert list(checks) == list(doctor.CHECKS)
    assert {check["state"] for check in checks.values()} <= {state.value for state in State}
    assert checks["gpu"]["state"] == "not needed here"


def test_its_own_process_imports_no_torch() -> None:
    code = (
        "import sys; sys.argv = ['orchestrator', 'doctor', '--device', 'cpu']\n"
        "from orchestrator.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'triton', 'openai', 'anthropic', 'git') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.splitlines()[-1] == "[]"


# --- torch


def test_a_broken_torch_is_said_plainly(tmp_path: Path) -> None:
    path = fake_torch(tmp_path, "raise ImportError('libtorch.so: wrong\\nshape')\n")
    result = run(tmp_path, "--json", PYTHONPATH=path)
    assert result.returncode == 1
    assert json.loads(result.stdout)["stopped_by"] == ["torch and triton"]
    check = found(result)["torch and triton"]
    assert check["state"] == "lacking" and check["essential"]
    assert "torch cannot be imported: ImportError: libtorch.so: wrong\\nshape" in check["said"]
    assert "reinstall" in check["advice"]


def test_a_torch_that_crashes_is_said_plainly(tmp_path: Path) -> None:
    result = run(tmp_path, "--json", PYTHONPATH=fake_torch(tmp_path, "import os\nos.kill(os.getpid(), 11)\n"))
    assert result.returncode == 1
    assert "signal 11" in found(result)["torch and triton"]["said"]


def test_a_slow_torch_is_not_waited_for_and_not_held_against_the_machine(tmp_path: Path) -> None:
    begun = time.monotonic()
    result = run(tmp_path, PYTHONPATH=fake_torch(tmp_path, "import time\ntime.sleep(60)\n"))
    assert time.monotonic() - begun < 7  # 5 on a machine that does nothing else
    assert result.returncode == 0
    assert "did not answer within 4 s" in result.stdout
    assert result.stdout.splitlines()[-1] == "Nothing was found that stops a run here; not known: torch and triton."


def test_an_untested_version_is_named(tmp_path: Path) -> None:
    info = tmp_path / "path" / "torch-1.13.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.13.1\n")
    check = found(run(tmp_path, "--json", PYTHONPATH=str(info.parent)))["torch"]
    assert check["state"] == "lacking" and "1.13.1" in check["said"] and "pip install 'torch>=" in check["advice"]


def test_what_is_not_installed_stops_a_run() -> None:
    condition = stack.installed("no-such-distribution", (1, 0), (2, 0))
    assert condition.stops and "is not installed" in condition.said


def test_the_tested_versions_are_those_of_the_package() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for name, (low, high) in stack.TESTED.items():
        assert f"{name}>={low[0]}.{low[1]},<{high[0]}.{high[1]}" in dependencies


# --- the GPU and what it needs


def test_a_gpu_that_was_asked_for_and_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path, "--json", "--device", "gpu", CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 1
    assert found(result)["gpu"]["state"] == "lacking"
    assert "--device cpu" in found(result)["gpu"]["advice"]


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    condition = graphics.writable_cache()
    assert condition.state is State.LACKING and "Not a directory" in condition.said and not condition.stops
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "not" / "yet"))
    assert graphics.writable_cache().state is State.OK
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def script(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_compiler_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "none"))
    assert graphics.tried_compiler().stops and "cannot be run" in graphics.tried_compiler().said
    failing = script(tmp_path, "cc", "echo 'x.c:1:10: fatal error: Python.h: No such file or directory' >&2; exit 1")
    monkeypatch.setenv("CC", str(failing))
    assert graphics.tried_compiler().stops and "Python.h: No such file" in graphics.tried_compiler().said


@pytest.mark.skipif(
    not any(Path(f"/usr/bin/{name}").exists() for name in ("gcc", "clang")), reason="no C compiler here"
)
def test_a_compiler_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    assert graphics.tried_compiler().state is State.OK, graphics.tried_compiler().said


# --- git, the confinement, the disk


def test_no_git_stops_a_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    result = run(tmp_path, "--json", PATH=str(tmp_path / "bin"))
    assert result.returncode == 1
    assert found(result)["git"]["said"] == "there is no git on PATH"


def test_a_git_that_cannot_make_a_repository_stops_a_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    old = 'if [ "$1" = --version ]; then echo git version 2.20.1; else echo "error: unknown option" >&2; exit 129; fi'
    script(tmp_path / "bin", "git", old)
    result = run(tmp_path, "--json", PATH=str(tmp_path / "bin"))
    assert result.returncode == 1
    assert found(result)["git"]["said"] == "git version 2.20.1 makes no repository: error: unknown option"
    assert "2.29" in found(result)["git"]["advice"]


def test_a_missing_piece_of_the_confinement_is_named() -> None:
    pieces = [SandboxPiece("limits", True), SandboxPiece("TCP refused", False, "no Landlock here")]
    condition = tools.confinement(pieces, required=False)
    assert condition.state is State.LACKING and "TCP refused (no Landlock here)" in condition.said
    assert not condition.stops
    assert tools.confinement(pieces, required=True).stops
    assert tools.confinement(pieces[:1], required=True).state is State.OK


def test_workspaces_that_cannot_be_written_stop_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(tmp_path, "--json", "--workspaces", "file/below")
    assert result.returncode == 1
    assert "Not a directory" in found(result)["disk"]["said"]


def test_little_room_is_said(tmp_path: Path) -> None:
    condition = disk.disk(asked(tmp_path, "judge.limits.scratch_mb=1000000000"))
    assert condition.state is State.LACKING and "GiB free" in condition.said and not condition.stops


# --- keys, servers, commands


def test_no_key_is_ever_shown(tmp_path: Path) -> None:
    """Right ones, ones in the wrong variable, in an address, in a query, and one that no header can carry."""
    variables = [
        {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET},
        {"OPENAI_BASE_URL": SECRET, "ANTHROPIC_API_KEY": f"{SECRET} and more"},
        {"OPENAI_BASE_URL": f"http://user:{SECRET}@127.0.0.1:9/v1?key={SECRET}", "ANTHROPIC_API_KEY": SECRET},
        {"OPENAI_BASE_URL": f"http://127.0.0.1:{SECRET}/", "ANTHROPIC_BASE_URL": f"ftp://{SECRET}"},
    ]
    offline = {"https_proxy": "http://127.0.0.1:9"}  # the vendors' own servers are not asked by a test
    for given in variables:
        for form in ([], ["--json"]):
            result = run(tmp_path, *form, **given, **offline)
            assert "Traceback" not in result.stderr
            assert SECRET not in result.stdout + result.stderr
            assert "ANTHROPIC_API_KEY is" in result.stdout or "ANTHROPIC_API_KEY holds" in result.stdout


@contextmanager
def answering(data: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives one answer, whatever it is asked; its address, and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        thread.join(5)


REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"


def test_a_server_is_asked_without_the_key(tmp_path: Path) -> None:
    with answering(REFUSED) as (address, requests):
        with_name = address.replace("http://", f"http://user:{SECRET}@") + f"/v1?key={SECRET}"
        result = run(tmp_path, "--json", OPENAI_BASE_URL=with_name, OPENAI_API_KEY=SECRET)
    assert found(result)["openai server"]["said"] == f"{address} answers (asked without a key)"
    (request,) = requests
    assert SECRET.encode() not in request and b"authorization" not in request.lower()


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (REFUSED, State.OK),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", State.OK),
        (b"SSH-2.0-OpenSSH_9.2\r\n", State.LACKING),
        (b"", State.LACKING),
    ],
)
def test_any_http_answer_is_an_answer(data: bytes, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    with answering(data) as (address, _):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        condition = models.openai_server(asked())
    assert condition.state is state and address in condition.said, condition


def test_a_server_that_is_not_there_stops_only_the_agent_that_needs_it(tmp_path: Path) -> None:
    for agent, code in (("auto", 0), ("recorded", 0), ("openai", 1)):
        result = run(tmp_path, "--json", "--agent", agent, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
        assert result.returncode == code
        assert "http://127.0.0.1:9 does not answer: " in found(result)["openai server"]["said"]


def test_a_missing_key_stops_only_the_agent_that_needs_it(tmp_path: Path) -> None:
    assert run(tmp_path, "--agent", "anthropic").returncode == 1
    assert run(tmp_path, "--agent", "inbox").returncode == 0


def test_an_unknown_agent_is_exit_2(tmp_path: Path) -> None:
    result = run(tmp_path, "--agent", "opnai")
    assert result.returncode == 2 and "Did you mean 'openai'" in result.stderr and "Traceback" not in result.stderr


# --- all of them together


def test_what_does_not_answer_is_not_known() -> None:
    def quick(_: Asked) -> Condition:
        return Condition("quick", State.OK, "here")

    def hangs(_: Asked) -> Condition:
        time.sleep(30)
        return Condition("hangs", State.OK, "never said")

    conditions = doctor.examine(asked(), {"hangs": hangs, "quick": quick}, limit_s=0.2)
    assert [(condition.name, condition.state) for condition in conditions] == [
        ("hangs", State.UNKNOWN),
        ("quick", State.OK),
    ]
    assert "did not answer within 0.2 s" in conditions[0].said


def test_a_bug_in_a_check_is_not_a_lack() -> None:
    def broken(_: Asked) -> Condition:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        doctor.examine(asked(), {"broken": broken})


def test_a_command_is_looked_for_before_it_is_needed() -> None:
    def condition(**agent: object) -> Condition:
        settings = config.load(flags={"agent": agent})
        return models.command(Asked(settings, Path("workspaces")))

    assert condition(name="auto").state is State.UNNEEDED
    lacking = condition(name="command", command="no-such-program -p")
    assert lacking.stops and "no program 'no-such-program' on PATH" in lacking.said
    there = condition(name="command", command="true")
    assert there.state is State.OK and "it gets no key, no network, its work folder" in there.said
