"""Asks a process of the judge's what a problem file holds: it is executed there, in no process of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestrator.errors import JudgeError, UsageError
from orchestrator.executors.local import judge_environment
from orchestrator.problems.facts import Facts
from orchestrator.problems.source import missing
from orchestrator.records import from_json
from orchestrator.text import printable

_LIMIT_S = 300


def read(path: Path) -> str:
    """The file's text. Raises UsageError where it is no problem."""
    try:
        source = path.read_text(encoding="utf-8")
        lacking = missing(source)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a problem: {printable(str(error), 200)}") from error
    if lacking:
        raise UsageError(f"{path} is no problem: it defines no {', '.join(lacking)}")
    return source


def examine(path: Path, source: str) -> Facts:
    """What executing it says. Raises UsageError where it cannot be an op, JudgeError where our process fails."""
    command = [sys.executable, "-m", "orchestrator.judge.problem"]
    environment = judge_environment() | {"CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            command, input=source.encode(), env=environment, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{path}: executing it took more than {_LIMIT_S} s; give smaller sizes") from None
    said = done.stdout.decode(errors="replace").rpartition("\n\0")[2]
    if done.returncode or not said.strip():
        last = printable(done.stderr.decode(errors="replace").strip()[-300:], 300)
        raise JudgeError(f"{path} ended the process that examined it: {last}")
    facts = from_json(Facts, said)
    if facts.refused:
        raise UsageError(f"{path} cannot be an op: {printable(facts.refused, 400)}")
    return facts
