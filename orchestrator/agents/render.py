"""A prompt as one document that stands alone: for the record, for a person, and for its hash.

Owns the form only; pure. What a prompt says comes from the templates.
"""

from __future__ import annotations

import hashlib

from orchestrator.records import Prompt


def render(prompt: Prompt) -> str:
    """The whole conversation as Markdown: the system text, then every turn under a heading of its own."""
    sections = [("System", prompt.system)] if prompt.system else []
    sections += [(f"Turn {number}: {turn.role}", turn.text) for number, turn in enumerate(prompt.turns, 1)]
    return "\n".join(f"# {heading}\n\n{text.strip()}\n" for heading, text in sections)


def prompt_sha256(prompt: Prompt) -> str:
    """The hash of the rendered prompt, which is also that of the record's prompt.md."""
    return hashlib.sha256(render(prompt).encode()).hexdigest()
