"""From a model's words to files: which fenced blocks of a reply are meant as which files.

A block is named by its info string (```python rmsnorm_triton.py), by its first line when that is a comment holding
only a file name, or by the line above it when that is nothing but a file name; a sentence that mentions a file names
nothing, since a model may well quote a line of the test to explain itself. All named blocks become files, whatever
the name: the guard judges them. Of the unnamed ones only the kernel is taken: the last that defines the entry
function, or the only one.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PYTHON = {"", "python", "py", "python3"}
_FILE = r"(?:[\w.\-]+[/\\])*[\w.\-]*\.(?:py|pyi|pth|md|txt|ya?ml|toml|cfg|ini|json|sh|so|gitattributes|gitignore)"
_MARKDOWN = MarkdownIt()  # one for all replies: it keeps nothing of what it parses
# Its marks are few: where any number of them could as well belong to the name, a long line takes minutes.
_ALONE = re.compile(
    rf"^(?:#+\s*)?(?:file(?:name)?\s*:\s*)?[`*\"'_]{{0,8}}({_FILE})[`*\"'_]{{0,8}}\s*:?[`*]{{0,8}}$", re.IGNORECASE
)


def files(text: str, kernel: str, function: str) -> dict[str, bytes]:
    """The files of a reply by name, or none. `kernel` is the kernel file's name, `function` what it must define."""
    named: dict[str, str] = {}
    unnamed: list[str] = []
    for language, name, code in blocks(text):
        if name:
            named[name] = code
        elif language in _PYTHON:
            unnamed.append(code)
    if kernel not in named and (chosen := _kernel(unnamed, function)) is not None:
        named[kernel] = chosen
    return {name: code.encode("utf-8", "surrogatepass") for name, code in named.items()}


def wrapped(said: str, code: str, kernel: str) -> str:
    """A reply that `files` reads as that kernel file: a sentence, and the file in a fence that nothing in it closes."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if code.endswith("\n") else "\n"
    return f"{said}\n\n{fence}python {kernel}\n{code}{end}{fence}\n"


def words(text: str) -> str:
    """What a reply says beside its fenced blocks: of a repair, the cause that the model names."""
    lines = text.splitlines()
    for token in _MARKDOWN.parse(text):
        if token.type == "fence" and token.map:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _kernel(blocks: list[str], function: str) -> str | None:
    defining = [code for code in blocks if re.search(rf"^def\s+{re.escape(function)}\s*\(", code, re.MULTILINE)]
    if defining:
        return defining[-1]
    return blocks[0] if len(blocks) == 1 else None


def blocks(text: str) -> list[tuple[str, str, str]]:
    """(language, name or "", code) of each fenced block, in order."""
    found = []
    above: Token | None = None
    for token in _MARKDOWN.parse(text):
        if token.type == "fence":
            language, _, rest = token.info.strip().partition(" ")
            found.append((language.lower(), _name(language, rest, token.content, above), token.content))
            above = None
        elif token.type == "inline":
            above = token
    return found


def _name(language: str, rest: str, code: str, above: Token | None) -> str:
    for word in (*re.split(r"[\s=\"'{}]+", rest), language):
        if re.fullmatch(_FILE, word, re.IGNORECASE):
            return word
    first = code.split("\n", 1)[0].strip()
    if first.startswith("#") and (match := _ALONE.match(first)):
        return match[1]
    if above is not None and (match := _ALONE.match(above.content.split("\n")[-1].strip())):
        return match[1]
    return ""
