"""Which names of the guide a prompt quotes: those an op needs, and those an error is about.

Pure functions. Which words of an op call for which names is data, prompts/references/names.yaml; the pages of patterns
that its tags ask for name others. From an error only names are taken: what is quoted is the guide's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from orchestrator import resources
from orchestrator.docs.guide import Entry, Guide, shortened
from orchestrator.records import Report, Status

_NAMED = re.compile(r"\b((?:triton\.language|tl|libdevice|triton)(?:\.\w+)+)")
_LACKS = re.compile(r"module '(triton(?:\.\w+)*)' has no attribute '(\w+)'")
_TENSOR_LACKS = re.compile(r"'tensor' object has no attribute '(\w+)'")
_CALLED = re.compile(r"\b(\w+)\(\) (?:got|missing|takes)\b")
_ABOUT_NAMES = {Status.COMPILE_ERROR, Status.RUNTIME_ERROR}
_MOST = 6


@dataclass(frozen=True)
class Missing:
    """A name that an error is about and that this Triton does not have."""

    name: str
    near: tuple[Entry, ...]


@dataclass(frozen=True)
class Told:
    """What an error's prompt quotes."""

    missing: tuple[Missing, ...] = ()
    entries: tuple[Entry, ...] = ()


def for_op(guide: Guide, text: str, patterns: str = "") -> tuple[Entry, ...]:
    """The names that an op needs: by the words of `text`, its specification with its reference, and those that the
    pages of `patterns` use, which its tags ask for.
    """
    table = yaml.safe_load((resources.shipped("prompts") / "references" / "names.yaml").read_text(encoding="utf-8"))
    words = set(re.findall(r"(?<= )@(?= )|\w+", text.lower()))
    asked: list[list[str]] = [row["names"] for row in table["where"] if words & set(row["words"])]
    used = _NAMED.findall(patterns)
    return _found(guide, [*table["always"], *(name for names in asked for name in names), *used])


def for_report(guide: Guide, report: Report) -> Told:
    """The names that a failed attempt's error is about."""
    if report.status not in _ABOUT_NAMES:
        return Told()
    text = "\n".join([report.message, report.detail, *(case.detail for case in report.cases[:_MOST])])
    names = [f"{shortened(module)}.{name}" for module, name in _LACKS.findall(text)]
    names = [name.replace("triton.language", "tl", 1) for name in names]
    names += [f"tl.tensor.{name}" for name in _TENSOR_LACKS.findall(text)]
    names += [shortened(name) for name in _NAMED.findall(text)]
    missing = [name for name in dict.fromkeys(names) if guide.find(name) is None and _is_a_name(name)]
    called = [f"tl.{name}" for name in _CALLED.findall(text)]
    return Told(
        tuple(Missing(name, guide.near(name)) for name in missing[:_MOST]),
        _found(guide, [*called, *names])[:_MOST],
    )


def _is_a_name(name: str) -> bool:
    """Whether it is one of the language, not a module or a file of the package (`triton.compiler.errors`)."""
    prefix = name.rsplit(".", 1)[0]
    return prefix in ("tl", "tl.math", "tl.tensor", "libdevice") and not name.endswith((".py", ".core", ".math"))


def _found(guide: Guide, names: Iterable[str]) -> tuple[Entry, ...]:
    entries = (guide.find(name) for name in names)
    return tuple(dict.fromkeys(entry for entry in entries if entry is not None))
