"""The rendered prompt: complete, in order, and the same each time."""

from __future__ import annotations

import hashlib

from orchestrator.agents.render import prompt_sha256, render
from orchestrator.records import Prompt, Turn

PROMPT = Prompt("Be brief.\n", (Turn("user", "Write it."), Turn("assistant", "Here."), Turn("user", "Again.")))


def test_the_whole_conversation() -> None:
    assert render(PROMPT) == (
        "# System\n\nBe brief.\n\n"
        "# Turn 1: user\n\nWrite it.\n\n"
        "# Turn 2: assistant\n\nHere.\n\n"
        "# Turn 3: user\n\nAgain.\n"
    )


def test_no_heading_without_a_system_text() -> None:
    assert render(Prompt("", PROMPT.turns[:1])) == "# Turn 1: user\n\nWrite it.\n"


def test_the_hash_is_that_of_the_document() -> None:
    assert prompt_sha256(PROMPT) == hashlib.sha256(render(PROMPT).encode()).hexdigest()
    assert prompt_sha256(PROMPT) != prompt_sha256(Prompt("Be brief.", PROMPT.turns[:2]))
