"""The language guide: every public name of one release of Triton, with signature and docstring.

Owns its form as Markdown, both ways, and finding names in it: the one asked for, or those nearest to one that does not
exist. Where the facts come from is `judge.names`'.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_TITLE = re.compile(r"^# The names of Triton (\S+)$", re.MULTILINE)
_ENTRY = re.compile(r"^## ((?:triton|tl|libdevice)\.[\w.]+)$", re.MULTILINE)
_FENCE = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_ROLE = re.compile(r":(?:py:)?\w+:`([^`]+)`")  # reStructuredText
_FIELD = re.compile(r"^\s*:(?:param|type|return|rtype)\b", re.MULTILINE)
_NEAR = 5
_REPEATING = ("tl.math.", "tl.tensor.")  # what these have, `tl` mostly has too
_PLACES = ("triton.language.extra.libdevice", "tl.extra.libdevice", "triton.language")
_SHORT = {"triton.language.extra.libdevice": "libdevice", "tl.extra.libdevice": "libdevice", "triton.language": "tl"}


@dataclass(frozen=True)
class Entry:
    """One name."""

    name: str  # as a kernel file writes it: "tl.load", "libdevice.tanh", "triton.cdiv", "tl.tensor.to"
    signature: str
    text: str = ""  # the docstring

    @property
    def about(self) -> str:
        """Its first sentence, on one line; "" where the release says nothing."""
        paragraph = _FIELD.split(self.text.split("\n\n", 1)[0])[0]
        plain = " ".join(_ROLE.sub(r"\1", paragraph).replace("``", "`").split())
        return plain.split(". ", 1)[0].rstrip(".:")


@dataclass(frozen=True)
class Guide:
    """All names of one release."""

    version: str
    entries: Mapping[str, Entry]

    def find(self, name: str) -> Entry | None:
        """The entry of a name in whichever way it is written; a name of `tl.math` is one of `tl` too."""
        short = shortened(name)
        return self.entries.get(short) or self.entries.get(short.replace("tl.math.", "tl.", 1))

    def near(self, name: str) -> tuple[Entry, ...]:
        """What may be meant by a name that does not exist: the same word elsewhere, parts of it, then likeness."""
        word = shortened(name).rsplit(".", 1)[-1].lower()
        same = self._words.get(word, [])
        parts = [one for one in self._words if len(one) > 2 and (one in word or word in one) and one != word]
        parts.sort(key=lambda one: (-difflib.SequenceMatcher(None, one, word).ratio(), one))
        alike = difflib.get_close_matches(word, self._words, n=_NEAR, cutoff=0.7)
        names = [*same, *(name for one in (*parts, *alike) for name in self._words[one])]
        return tuple(self.entries[one] for one in dict.fromkeys(names))[:_NEAR]

    @cached_property
    def _words(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in sorted(self.entries, key=_commonness):
            word = name.rsplit(".", 1)[-1]
            if name.startswith(_REPEATING) and f"tl.{word}" in self.entries:
                continue
            found.setdefault(word.lower(), []).append(name)
        return found


def _commonness(name: str) -> tuple[bool, bool]:
    """What kernels use most comes first: the language, then libdevice, then the host's."""
    return not name.startswith("tl."), name.startswith("triton.")


def shortened(name: str) -> str:
    """A name as kernel files write it: `triton.language.load` is `tl.load`."""
    for long in _PLACES:
        if name.startswith(long + "."):
            return _SHORT[long] + name[len(long) :]
    return name


def guide_of(version: str, entries: Iterable[Entry]) -> Guide:
    """A guide of these entries."""
    return Guide(version, {one.name: one for one in entries})


def to_markdown(guide: Guide, made: str) -> str:
    """The guide as a page; `made` says from what and when."""
    parts = [f"# The names of Triton {guide.version}\n\n{made}\n"]
    for one in guide.entries.values():
        text = "".join(f"\n{line}" if not line.startswith("#") else f"\n {line}" for line in one.text.splitlines())
        parts.append(f"## {one.name}\n\n```python\n{one.signature}\n```\n{text and f'{text}' + chr(10)}")
    return "\n".join(parts)


def from_markdown(page: str) -> Guide | None:
    """The guide that `to_markdown` wrote; None for any other page."""
    title = _TITLE.search(page)
    if title is None:
        return None
    pieces: Sequence[str] = _ENTRY.split(page)[1:]
    entries = []
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        fence = _FENCE.search(body)
        signature, text = (fence[1], body[fence.end() :]) if fence else (name, body)
        entries.append(Entry(name, signature, text.strip()))
    return guide_of(title[1], entries)
