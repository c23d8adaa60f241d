"""Runs the attack scripts once per user and keeps their answers for the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
NOBODY = 65534
_INTERPRETERS = (
    sys.executable,
    "/usr/bin/python3",
    "/usr/bin/python3.11",
    "/usr/bin/python3.12",
    "/usr/bin/python3.13",
)

Run = Callable[..., Any]


def _as(user: str, interpreter: str, arguments: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    switch: dict[str, Any] = {}
    if user == "user" and os.getuid() == 0:
        switch = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT), "SECRET": "planted-7f3a", "HOME": "/nonexistent"}
    return subprocess.run(
        [interpreter, *arguments], env=environment, cwd="/", capture_output=True, text=True, timeout=timeout_s, **switch
    )


@cache
def _interpreter_for(user: str, needs: str) -> str:
    for interpreter in _INTERPRETERS:
        try:
            found = _as(user, interpreter, ["-c", f"import {needs}"], 60)
        except (FileNotFoundError, PermissionError):
            continue
        if found.returncode == 0:
            return interpreter
    return ""


@cache
def _answers(user: str, needs: str, script: str, *arguments: str) -> Any:
    interpreter = _interpreter_for(user, needs)
    done = _as(user, interpreter, [str(HERE / script), *arguments], 200)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def run_script() -> Run:
    """run_script(user, script, *arguments): what a script printed as JSON, run once as "root" or as a "user"."""

    def run(user: str, script: str, *arguments: str, needs: str = "orchestrator.judge.forkserver") -> Any:
        if user == "root" and os.getuid() != 0:
            pytest.skip("the tests do not run as root")
        if not _interpreter_for(user, needs):
            pytest.skip(f"uid {NOBODY} can read no interpreter (3.11 or later) that imports {needs} from {CHECKOUT}")
        return _answers(user, needs, script, *arguments)

    return run
