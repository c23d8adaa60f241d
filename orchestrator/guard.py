"""What a candidate may do to its folder: write the kernel file, and nothing else.

Owns the comparison of an attempt's folder with the baseline, by content, never by asking git. Everything in the folder
is hostile until compared: links are never followed, no more is read than a comparison needs, and names are escaped
before they reach a person. Does not read what the kernel says (that is `policy`), and knows no git.

An attempt's folder is flat, so every folder found in it is a finding. Nothing may run in it while these functions
do: they look before they act.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from orchestrator.records import Finding, Status
from orchestrator.text import TEXT_CHARS, printable
from orchestrator.tree import KERNEL_BYTES, folded, is_folder, kind_of, os_errors, read_ordinary

FINDINGS = 50  # listed; the rest are counted
ENTRIES = 10_000  # looked at in one folder; more are themselves a finding

_UNWANTED_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | 0o111

# What a file of this name does although nobody asked for it.
_EFFECTS = {
    "conftest.py": "pytest would import it before the tests and it could change them",
    "sitecustomize.py": "Python would run it at start-up, before the test",
    "usercustomize.py": "Python would run it at start-up, before the test",
    ".gitattributes": "git would apply its filters, so that what is committed is not what stands in the file",
    ".gitignore": "git would no longer show the files it names",
    ".gitmodules": "git would take a folder for another repository",
    ".git": "a repository inside the folder: its index can hide changes and its hooks can run code",
    "pytest.ini": "pytest would take its options from it",
    "pyproject.toml": "pytest and other tools would take their options from it",
    "setup.cfg": "pytest and other tools would take their options from it",
    "tox.ini": "pytest would take its options from it",
    "pyvenv.cfg": "Python could take the folder for an environment of its own",
}
_IMPORTED = frozenset({"torch", "triton", "numpy", "pytest"}) | frozenset(sys.stdlib_module_names)


def touched(baseline: Mapping[str, bytes], tree: Path, kernel: str) -> tuple[Finding, ...]:
    """Everything in an attempt's folder that is not the baseline or an ordinary kernel file. A clean one gives ().

    A missing kernel is no finding. At most FINDINGS are listed, the gravest kinds first; the last one then says how
    many there are more.
    """
    rule = _Rule(baseline, tree, kernel)
    if not is_folder(tree):
        return (rule.finding(tree.name, "", "the attempt's folder is gone or is no folder any more"),)
    if not os.access(tree, os.R_OK | os.X_OK):
        return (rule.finding(tree.name, "", "the attempt's folder cannot be read any more"),)
    with os_errors(f"read the attempt's folder {tree}"):
        findings = [found for name in sorted(baseline) if (found := rule.baseline_file(name))]
        if found := rule.kernel_file():
            findings.append(found)
        findings += rule.extras()
    if len(findings) <= FINDINGS:
        return tuple(findings)
    more = len(findings) - FINDINGS
    return (*findings[:FINDINGS], rule.finding(f"{more} more", "", f"and {more} more entries that do not belong here"))


@dataclass(frozen=True)
class _Rule:
    """One comparison: the methods each look at one kind of entry."""

    baseline: Mapping[str, bytes]
    tree: Path
    kernel: str

    def finding(self, where: str, text: str, message: str) -> Finding:
        advice = f"only {self.kernel} may change; leave every other file as it was and add none"
        return Finding(Status.TAMPERED, printable(where), printable(text), message, advice)

    def baseline_file(self, name: str) -> Finding | None:
        """Whether a file of the baseline is still itself."""
        want = self.baseline[name]
        path = self.tree / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            return self.finding(name, "", "deleted")
        if oddity := _oddity(path, found):
            return self.finding(name, "", oddity)
        # One line beyond the baseline is enough to name what was appended.
        got = read_ordinary(path, len(want) + TEXT_CHARS * 4)
        if got is None:
            return self.finding(name, "", "cannot be read any more")
        if got != want:
            return self.finding(name, _first_difference(want, got), "edited")
        return None

    def kernel_file(self) -> Finding | None:
        """Whether the kernel, if there is one, is an ordinary file of a sensible size."""
        path = self.tree / self.kernel
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        if oddity := _oddity(path, found):
            return self.finding(self.kernel, "", oddity)
        if found.st_size > KERNEL_BYTES:
            return self.finding(self.kernel, f"{found.st_size} bytes", f"larger than {KERNEL_BYTES} bytes")
        if read_ordinary(path, 1) is None:
            return self.finding(self.kernel, "", "cannot be read")
        return None

    def extras(self) -> list[Finding]:
        """Whatever else lies in the folder: what has an effect by its name first, the rest by name."""
        with os.scandir(self.tree) as entries:
            names = [entry.name for entry in islice(entries, ENTRIES + 1)]
        known = {*self.baseline, self.kernel}
        effects = {name: self.effect(name) for name in names if name not in known}
        order = sorted(effects, key=lambda name: (not effects[name], name))
        findings = [self.extra(name, effects[name]) for name in order]
        if len(names) > ENTRIES:
            findings.append(self.finding(self.tree.name, "", f"more than {ENTRIES} entries; not all were looked at"))
        return findings

    def extra(self, name: str, effect: str) -> Finding:
        path = self.tree / name
        kind = kind_of(path)
        text = _contents(path) if kind == "a folder" else kind
        return self.finding(name, text, f"{kind} that is not part of the baseline" + (f": {effect}" if effect else ""))

    def effect(self, name: str) -> str:
        """What a new entry would do by its name alone; '' if nothing."""
        known = [*self.baseline, self.kernel]
        for other in known:
            if folded(name) == folded(other):
                return f"its name differs from {other} in case or Unicode form only"
        if name in _EFFECTS:
            return _EFFECTS[name]
        if name == "__pycache__":
            return "Python would run the compiled files in it in place of the sources they are named after"
        module, _, suffix = name.partition(".")
        importable = suffix == "" or suffix.rpartition(".")[2] in ("py", "pyc", "so", "pyd")
        if importable and module in {*_IMPORTED, *(Path(other).stem for other in known)}:
            return f"it would shadow {module}: `import {module}` would take it instead of the real one"
        return ""


def _oddity(path: Path, found: os.stat_result) -> str:
    """Why something cannot be an ordinary file of ours, in words; '' if it can."""
    if not stat.S_ISREG(found.st_mode):
        return f"{kind_of(path)} where an ordinary file belongs"
    if found.st_nlink > 1:
        return f"a hard link ({found.st_nlink} names): it is also a file somewhere else"
    if found.st_mode & _UNWANTED_BITS:
        return f"its mode was changed to {stat.S_IMODE(found.st_mode):04o}; an ordinary file is 0644"
    if not found.st_mode & stat.S_IRUSR:
        return f"its mode was changed to {stat.S_IMODE(found.st_mode):04o} and it cannot be read"
    return ""


def _first_difference(want: bytes, got: bytes) -> str:
    pairs = zip_longest(want.splitlines(keepends=True), got.splitlines(keepends=True))
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return f"line {number}: {_line(new)}; was {_line(old)}"
    return ""


def _line(line: bytes | None) -> str:
    if line is None:
        return "nothing"
    text = line.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _contents(folder: Path) -> str:
    """The first names in a folder, one level down."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, 100))
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return "holds " + ", ".join(names) if names else "empty"
