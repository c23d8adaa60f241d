"""What the agents' tests share: a clean environment, a scripted server, and a question."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.agents import Request
from orchestrator.records import Prompt, Turn

from .loopback import Server, serving


@pytest.fixture(autouse=True)
def no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no address of the person who runs the tests, and no proxy between them and the loopback."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    """A scripted server on the loopback."""
    with serving() as script:
        yield script


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    """The second round of a stage: a fixed prefix, a reply, and what was wrong with it."""
    turns = (Turn("user", "Write rmsnorm."), Turn("assistant", "Here."), Turn("user", "Wrong in the last column."))
    return Request(Prompt("You write Triton kernels.", turns), "correct", 2, tmp_path)
