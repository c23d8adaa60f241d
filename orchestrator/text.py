"""Text from outside, made fit for a person's eyes: one line, nothing that a terminal would obey."""

from __future__ import annotations

import unicodedata

TEXT_CHARS = 160  # of a finding's text or name


def printable(text: str, cap: int = TEXT_CHARS) -> str:
    """Text from outside on one line: control, format and undecodable characters escaped, at most cap characters."""
    shown = "".join(_escaped(char) for char in text[: cap + 1])
    return shown if len(shown) <= cap else shown[: cap - 1] + "…"


def _escaped(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return char.encode("unicode_escape").decode("ascii")
