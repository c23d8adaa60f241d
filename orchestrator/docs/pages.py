"""Tutorials and best practices: from Triton's own site where it can be reached, from our own references otherwise.

Owns which pages of the site are taken, how HTML becomes text, and what stands in for them. What comes from the network
is for a person to read: nothing of it goes into a prompt.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException

from orchestrator import resources
from orchestrator.audit.findings import Part
from orchestrator.audit.rules import RULES

TUTORIALS, PRACTICES = "triton-tutorials.md", "triton-best-practices.md"
_LESSONS = (
    "01-vector-add",
    "02-fused-softmax",
    "03-matrix-multiplication",
    "04-low-memory-dropout",
    "05-layer-norm",
    "06-fused-attention",
    "07-extern-functions",
    "08-grouped-gemm",
    "09-persistent-matmul",
)
_CHAPTERS = ("chapter-1/introduction", "chapter-2/related-work", "chapter-3/debugging")
PAGES: Mapping[str, tuple[str, ...]] = {
    TUTORIALS: tuple(f"getting-started/tutorials/{name}.html" for name in _LESSONS),
    PRACTICES: tuple(f"programming-guide/{name}.html" for name in _CHAPTERS),
}
_NO_PATTERNS = {"audit-guide.md"}  # of our references
_TIMEOUT_S = 10
_MOST_BYTES = 4 << 20
_TITLES = {TUTORIALS: "Triton tutorials", PRACTICES: "Triton best practices"}


@dataclass(frozen=True)
class Page:
    """One file of the cache, and in a few words where it is from."""

    text: str
    source: str


def page(name: str, site: str | None, date: str) -> Page:
    """The page of that name. `site` is where Triton's documentation is; None: no network is asked."""
    why = "no network was asked"
    if site is not None:
        try:
            return _from_site(name, site.rstrip("/"), date)
        except (OSError, HTTPException, ValueError) as error:
            why = f"{site} cannot be read ({_reason(error)})"
    source = f"our own references; {why}"
    return Page(f"# {_TITLES[name]}\n\nFrom {source}; {date}.\n\n{_own(name)}", source)


def _from_site(name: str, site: str, date: str) -> Page:
    parts = []
    for path in PAGES[name]:
        request = urllib.request.Request(f"{site}/{path}", headers={"User-Agent": "triton-kernel-orchestrator"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            text = to_text(answer.read(_MOST_BYTES).decode("utf-8", "replace"))
        if not text:
            raise ValueError(f"{path} has no text")
        parts.append(f"<!-- {site}/{path}, {date} -->\n\n{text}")
    source = f"{site}, {len(parts)} pages"
    own = f"\n\n# What our audit looks for\n\n{_practices()}" if name == PRACTICES else ""
    return Page(f"# {_TITLES[name]}\n\nFrom {source}; {date}.\n\n" + "\n\n".join(parts) + own, source)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return " ".join(str(reason).split())[:100] or type(error).__name__


def _own(name: str) -> str:
    if name == PRACTICES:
        return _practices()
    files = sorted((resources.shipped("prompts") / "references").rglob("*.md"))
    texts = [file.read_text(encoding="utf-8").strip() for file in files if file.name not in _NO_PATTERNS]
    return "\n\n".join(texts) if texts else "No page of ours is shipped on this yet."


def _practices() -> str:
    """The rules of the audit, each as what to do and why."""
    return "\n".join(_rules())


def _rules() -> Iterator[str]:
    for part in Part:
        yield f"## {part.value.capitalize()}\n"
        for rule, _ in RULES.values():
            if rule.part is part:
                yield f"- {rule.repair} Else: {rule.title}. {rule.why}"
        yield ""


def to_text(html: str) -> str:
    """The main part of a page as Markdown-like text: headings, paragraphs, lists and code; nothing else."""
    reader = _Reader()
    reader.feed(html)
    return re.sub(r"\n{3,}", "\n\n", "".join(reader.said)).strip()


class _Reader(HTMLParser):
    """Collects what stands in the element of role main."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._depth = 0  # of elements within the main one
        self._code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._depth or dict(attrs).get("role") == "main" or tag == "main":
            self._depth += tag not in ("br", "img", "hr", "input", "link", "meta", "source", "wbr")
        if not self._depth:
            return
        if tag in ("h1", "h2", "h3", "h4"):
            self.said.append(f"\n\n#{'#' * int(tag[1])} ")  # below the file's own heading
        elif tag == "pre":
            self.said.append("\n\n```text\n")
            self._code = True
        elif tag in ("p", "div", "tr"):
            self.said.append("\n\n")
        elif tag == "li":
            self.said.append("\n- ")

    def handle_endtag(self, tag: str) -> None:
        if self._depth and tag == "pre":
            self.said.append("\n```\n")
            self._code = False
        self._depth -= bool(self._depth)

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.said.append(data.replace("```", "` ` `") if self._code else re.sub(r"\s+", " ", data))
