"""What a candidate may do to its folder: write the kernel file, and nothing else.

Owns the comparison of an attempt's folder with the baseline (by content, never by asking git), the one way a reply's
files get into that folder, the one way the kernel's bytes get out of it, and putting it back afterwards. Everything
in the folder is hostile until compared: links are never followed, no more is read than a comparison needs, and names
are escaped before they reach a person. Does not read what the kernel says (that is `policy`), and knows no git.

An attempt's folder is flat, so every folder found in it is a finding. Nothing may run in it while these functions
do: they look before they act.
"""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path, PurePosixPath
from uuid import uuid4

from orchestrator.errors import WorkspaceError
from orchestrator.records import Finding, Status

KERNEL_BYTES = 1_000_000  # of a kernel file; the longest honest one known is a tenth of it
TEXT_CHARS = 160  # of a finding's text or name
FINDINGS = 50  # listed; the rest are counted
ENTRIES = 10_000  # looked at in one folder; more are themselves a finding
NAME_BYTES = 255  # of one component, the file system's own limit
NAME_DEPTH = 16

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


@contextmanager
def os_errors(doing: str) -> Iterator[None]:
    """The boundary of our own file operations: what the system refuses becomes a WorkspaceError that says what for."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"cannot {doing}: {error}; check the folder, its rights and the free space") from error


def printable(text: str, cap: int = TEXT_CHARS) -> str:
    """Text from outside on one line: control, format and undecodable characters escaped, at most cap characters."""
    shown = "".join(_escaped(char) for char in text[: cap + 1])
    return shown if len(shown) <= cap else shown[: cap - 1] + "…"


def _escaped(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return char.encode("unicode_escape").decode("ascii")


# --- comparing ------------------------------------------------------------------------------------------------------


def touched(baseline: Mapping[str, bytes], tree: Path, kernel: str) -> tuple[Finding, ...]:
    """Everything in an attempt's folder that is not the baseline or an ordinary kernel file. A clean one gives ().

    A missing kernel is no finding. At most FINDINGS are listed, the gravest kinds first; the last one then says how
    many there are more.
    """
    rule = _Rule(baseline, tree, kernel)
    if not _is_folder(tree):
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
        got = _read(path, len(want) + TEXT_CHARS * 4)
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
        if _read(path, 1) is None:
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
        kind = _kind(path)
        text = _contents(path) if kind == "a folder" else kind
        return self.finding(name, text, f"{kind} that is not part of the baseline" + (f": {effect}" if effect else ""))

    def effect(self, name: str) -> str:
        """What a new entry would do by its name alone; '' if nothing."""
        known = [*self.baseline, self.kernel]
        for other in known:
            if _folded(name) == _folded(other):
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
        return f"{_kind(path)} where an ordinary file belongs"
    if found.st_nlink > 1:
        return f"a hard link ({found.st_nlink} names): it is also a file somewhere else"
    if found.st_mode & _UNWANTED_BITS:
        return f"its mode was changed to {stat.S_IMODE(found.st_mode):04o}; an ordinary file is 0644"
    if not found.st_mode & stat.S_IRUSR:
        return f"its mode was changed to {stat.S_IMODE(found.st_mode):04o} and it cannot be read"
    return ""


def _kind(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return "something unreadable"
    if stat.S_ISLNK(mode):
        return f"a symlink to {printable(str(path.readlink()))}"
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something unknown")


def _contents(folder: Path) -> str:
    """The first names in a folder, one level down."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, 100))
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return "holds " + ", ".join(names) if names else "empty"


def _folded(name: str) -> str:
    """What a careless file system or reader takes a name for: no case, no Unicode form, no invisible characters."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


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


# --- reading and writing --------------------------------------------------------------------------------------------


def read_kernel(tree: Path, kernel: str) -> bytes | None:
    """The kernel's bytes, or None where there is no readable ordinary file. Above KERNEL_BYTES, one byte more only."""
    with os_errors(f"read {kernel}"):
        return _read(tree / kernel, KERNEL_BYTES + 1)


def _read(path: Path, cap: int) -> bytes | None:
    """At most cap bytes of an ordinary file. O_NONBLOCK: a named pipe must not hold us up."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(cap)


def lay_out(files: Mapping[str, bytes], into: Path) -> None:
    """Writes files of ours, mode 0644 whatever the umask, into a folder that is empty or does not exist yet."""
    with os_errors(f"write into {into}"):
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise WorkspaceError(f"{into} is not empty; name a new folder")
        for name, data in files.items():
            _write_new(into / name, data)


def _write_new(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o644)
        file.write(data)


def write_reply_files(tree: Path, files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Writes the named files of a model's reply into its folder; a name that would leave it is a finding instead.

    Names that stay inside are written whatever they are (a new conftest.py too): `touched` judges them.
    """
    findings = []
    for name, data in files.items():
        with os_errors(f"write {printable(name)} into {tree}"):
            refusal = _bad_name(name) or _write_below(tree, PurePosixPath(name), data)
        if refusal:
            advice = "name only the kernel file, plainly, without a folder"
            findings.append(Finding(Status.TAMPERED, printable(name), "", refusal, advice))
    return tuple(findings)


def _bad_name(name: str) -> str:
    """Why a name may not be written, in words; '' if it may."""
    path = PurePosixPath(name)
    try:
        raw = [os.fsencode(part) for part in path.parts]
    except UnicodeEncodeError:
        return "a name that is no text"
    too_long = len(raw) > NAME_DEPTH or any(len(part) > NAME_BYTES for part in raw)
    refusals = {
        "a name with a NUL": "\0" in name,
        "a name with a backslash": "\\" in name,
        "an absolute name": path.is_absolute(),
        "a name that is a folder's": not path.parts or name.endswith("/"),
        "a name that leaves the folder": ".." in path.parts,
        "a name inside a git repository's own folder": any(_folded(part) == ".git" for part in path.parts),
        "a name that is too long": too_long,
    }
    return next((f"not written: {words}" for words, holds in refusals.items() if holds), "")


def _write_below(tree: Path, name: PurePosixPath, data: bytes) -> str:
    """Writes one file; returns why not, in words, where something in its way is no folder of ours."""
    folder = tree
    for part in name.parts[:-1]:
        folder = folder / part
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o755)
        if not _is_folder(folder):
            return f"not written: {printable(part)} on its way is {_kind(folder)}"
    path = folder / name.name
    if path.is_symlink() or _is_folder(path):
        return f"not written: there is already {_kind(path)} of this name"
    # A new file in the old one's place: writing into a hard link would change the file it is a link to.
    path.unlink(missing_ok=True)
    _write_new(path, data)
    return ""


# --- putting back ---------------------------------------------------------------------------------------------------


def restore(baseline: Mapping[str, bytes], tree: Path) -> None:
    """Puts an attempt's folder back to the baseline exactly: no kernel, nothing else, whatever lay there."""
    remove_tree(tree)
    lay_out(baseline, tree)


def remove_tree(tree: Path) -> None:
    """Removes a folder and all below it: links themselves and not what they lead to, folders nobody may write too."""
    with os_errors(f"remove {tree}"):
        if not _is_folder(tree):
            tree.unlink(missing_ok=True)
            return
        for folder in _emptied(tree):
            folder.rmdir()


def _emptied(tree: Path) -> Iterable[Path]:
    """Every folder of a tree, once nothing is left in it.

    Folders inside folders are first moved up beside them: paths stay short and nothing recurses, so a nesting deeper
    than the interpreter's stack or the system's longest path is removed like any other.
    """
    tree.chmod(0o700)
    pending = []
    for entry in list(os.scandir(tree)):
        pending += _removed(entry, tree)
    while pending:
        folder = pending.pop()
        for entry in list(os.scandir(folder)):
            pending += _removed(entry, tree)
        yield folder
    yield tree


def _removed(entry: os.DirEntry[str], top: Path) -> list[Path]:
    """Unlinks a file; moves a folder to the top, made writable, and returns it."""
    if not entry.is_dir(follow_symlinks=False):
        Path(entry.path).unlink()
        return []
    Path(entry.path).chmod(0o700)
    return [Path(entry.path).rename(top / uuid4().hex)]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
