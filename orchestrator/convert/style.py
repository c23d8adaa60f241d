"""Kernels of the person's project, shown to the model as examples of house style: which files, and what keeps one out.

Owns what `--like` takes: Python files with a Triton kernel, whole, as many as the prompt has room for, none that holds
what looks like a key. A file that is named must be one; of a folder the others are passed over. It looks for the forms
that keys are known by and for the values of the environment's own; a password in no such form it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator import prompts, source
from orchestrator.errors import UsageError
from orchestrator.records import Finding
from orchestrator.text import printable

_NOT_THEIRS = ("site-packages", "node_modules", "__pycache__")  # of a project's folder; hidden folders neither
_SECRET_NAME = re.compile(r"(?i)(key|token|secret|password|passwd|credential)s?$")
_LEAST_SECRET = 8  # characters; shorter values of the environment are words
_KEYS = re.compile(
    r"\bsk-[A-Za-z0-9_-]{20,}|\b[srp]k_(?:live|test)_\w{10,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}"
    r"|\bhf_[A-Za-z0-9]{30,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bAIza[\w-]{35}|\bglpat-[\w-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}|://[^/\s:@\"']+:[^/\s@\"']+@"
    r"|(?i:api_?key|secret|password|passwd|auth_?token|access_?token)\w*[\"']?\s*[:=]\s*[\"'][^\"'\s]{8,}[\"']"
)


def shown(paths: Sequence[Path], environment: Mapping[str, str], tell: Callable[[str], None]) -> dict[str, str]:
    """The kernels' files by the name that they are shown under; those that are left out are told of.

    Raises UsageError for a path that is not there, a named file that cannot be shown, and where nothing can.
    """
    found: dict[str, str] = {}
    for name, file, named in _files(paths):
        text, why = _read(file, environment)
        if why and named:
            raise UsageError(f"--like {file} {why}")
        if why and text:
            tell(f"--like {file} is left out: it {why}")
        if not why:
            found[_free(name, found)] = text
    if paths and not found:
        raise UsageError(f"--like {', '.join(map(str, paths))}: no file there holds a Triton kernel (@triton.jit)")
    fitting = prompts.fitting(found)
    if left := sorted(set(found) - set(fitting)):
        told = f"the model is shown {prompts.STYLE} characters of --like at most: {', '.join(left)} would be more"
        if not fitting:
            raise UsageError(f"{told}; name a shorter file")
        tell(told)
    return fitting


def _files(paths: Sequence[Path]) -> Iterator[tuple[str, Path, bool]]:
    """Each file once: the name that it has there, where it is, and whether it was named itself."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(
                f"--like {path}: there is no such file or folder; name a kernel's file, or a folder of them"
            )
        inside = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in (one for one in inside if one.resolve() not in seen):
            parts = file.relative_to(path).parts if path.is_dir() else (file.name,)
            if any(part.startswith(".") or part in _NOT_THEIRS for part in parts[:-1]):
                continue
            seen.add(file.resolve())
            yield "_".join(parts), file, file == path


def _read(file: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """The file's text, where it holds a kernel, and why it cannot be shown, if it cannot."""
    try:
        with file.open("rb") as opened:
            data = opened.read(source.MAX_BYTES + 1)
    except OSError as error:
        return "", f"cannot be read: {error.strerror}"
    if b"triton" not in data:
        return "", "holds no Triton kernel (@triton.jit)"
    facts = source.read(data, file.name)
    if isinstance(facts, Finding):
        return "", f"cannot be read as Python: {printable(facts.message)}"
    if not facts.kernels:
        return "", "holds no Triton kernel (@triton.jit)"
    text = data.decode("utf-8-sig")
    line = _secret(text, environment)
    return text, f"has what looks like a key in line {line}, and keys are shown to nobody: take it out" if line else ""


def _secret(text: str, environment: Mapping[str, str]) -> int:
    """The first line with what looks like a key, or has the value of one of the environment's; 0 where none does."""
    values = [value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= _LEAST_SECRET]
    for number, line in enumerate(text.splitlines(), 1):
        if _KEYS.search(line) or any(value in line for value in values):
            return number
    return 0


def _free(name: str, taken: Mapping[str, str]) -> str:
    stem, at = name.removesuffix(".py"), 1
    while name in taken:
        at += 1
        name = f"{stem}_{at}.py"
    return name
