"""Text from outside, made fit for a person's eyes: one line, nothing that a terminal or Markdown would obey."""

from __future__ import annotations

import re
import unicodedata

TEXT_CHARS = 160  # of a finding's text or name


def printable(text: str, cap: int = TEXT_CHARS) -> str:
    """Text from outside on one line: control, format and undecodable characters escaped, at most cap characters."""
    shown = "".join(_escaped(char) for char in text[: cap + 1])
    return shown if len(shown) <= cap else shown[: cap - 1] + "…"


def code(text: str, cap: int = 400) -> str:
    """Text from outside as a Markdown code span: nothing in it is a heading, a link, a mention or the span's end."""
    shown = printable(text, cap).strip()
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def cell(text: str, cap: int = TEXT_CHARS) -> str:
    """Text from outside in a cell of a Markdown table: it cannot begin another one."""
    return printable(text, cap).replace("\\", "\\\\").replace("|", "\\|")


def _escaped(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return char.encode("unicode_escape").decode("ascii")
