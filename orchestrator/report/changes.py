"""What one attempt changed of the one before, line by line and highlighted. What is compared is hostile text.

Owns escaping it (pygments does) and refusing what would take long: a file beyond the limits is not shown, and says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from orchestrator.text import printable

_LINES, _COLUMNS = 3000, 500  # of a file that is shown; the longest honest kernels have some hundred
_CONTEXT = 3


@dataclass(frozen=True)
class Line:
    """A line of a difference. `sign`: "+", "-", " ", or "…" where lines that did not change are left out."""

    sign: str
    number: int | None  # in the newer file; of a line that is gone, in the older one
    html: Markup


@dataclass(frozen=True)
class Change:
    """What changed, or why it is not shown."""

    lines: tuple[Line, ...] = ()
    added: int | None = None  # None: the whole of a file that has none before it
    removed: int | None = None
    hidden: str = ""


def change(before: str | None, after: str | None) -> Change | None:
    """From one kernel to the next; the whole of it where there is none before. None where there is no kernel."""
    if after is None:
        return None
    old, new = _shown(before or ""), _shown(after)
    if max(len(old), len(new)) > _LINES:
        return Change(hidden=f"too long to show: {len(new)} lines; it is in the run's branch")
    if before == after:
        return Change(hidden="the same file as before")
    if before is None:
        return Change(tuple(Line(" ", number, html) for number, html in enumerate(_highlighted(new), 1)))
    lines = tuple(_lines(old, new))
    return Change(lines, sum(line.sign == "+" for line in lines), sum(line.sign == "-" for line in lines))


def stylesheet(style: str, selector: str) -> str:
    """The colours of highlighted code, as CSS below that selector."""
    return str(HtmlFormatter(style=style).get_style_defs(selector))


def _shown(text: str) -> list[str]:
    """The lines of a file with everything visible: what would turn the direction of reading is spelled out."""
    return [printable(line.expandtabs(4), _COLUMNS) for line in text.splitlines()]


def _lines(old: list[str], new: list[str]) -> Iterator[Line]:
    older, newer = _highlighted(old), _highlighted(new)
    shown_to = 0
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if group[0][3] > shown_to:
            yield Line("…", None, Markup())
        for kind, at, end, to, until in group:
            if kind == "equal":
                yield from (Line(" ", number + 1, newer[number]) for number in range(to, until))
            else:
                yield from (Line("-", number + 1, older[number]) for number in range(at, end))
                yield from (Line("+", number + 1, newer[number]) for number in range(to, until))
        shown_to = group[-1][4]
    if shown_to < len(new):
        yield Line("…", None, Markup())


def _highlighted(lines: list[str]) -> list[Markup]:
    """The lines as HTML. Each opens and closes its own marks, so that a line stands alone."""
    text = "\n".join(lines)
    html = highlight(text, PythonLexer(stripnl=False, ensurenl=True), HtmlFormatter(nowrap=True)).split("\n")
    return [Markup(line) for line in html[: len(lines)]]  # pygments has escaped them
