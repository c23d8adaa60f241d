"""Processes that a check starts, and ends before the common limit: a tool, or one of the judge's that tells facts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from orchestrator.doctor.condition import LIMIT_S, SAID_CHARS
from orchestrator.executors.local import judge_environment
from orchestrator.text import printable


class Died(Exception):
    """A process that was to tell facts ended without telling them."""


def facts_of(*arguments: str) -> Any:
    """What `judge.facts` tells, in the judge's environment. Raises TimeoutExpired, and Died with its last line."""
    command = [sys.executable, "-m", "orchestrator.judge.facts", *arguments]
    result = run(command, judge_environment())
    if result.returncode:
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "it said nothing")
        how = f"signal {-result.returncode}" if result.returncode < 0 else f"exit code {result.returncode}"
        raise Died(f"{printable(last.strip(), SAID_CHARS)} ({how})")
    return json.loads(result.stdout.splitlines()[-1])


def run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """The command, ended. Raises TimeoutExpired, and OSError where it cannot be started."""
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


def first_error(text: str) -> str:
    """The line of a tool's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing"))
