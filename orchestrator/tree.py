"""The files of an attempt's folder: laid out, written from a reply, read back, removed.

Owns the one way a reply's files get into that folder and the one way the kernel's bytes get out of it. What lies
there is hostile: links are never followed, names and depths are chosen to break a walk, and only ordinary files are
read. Whether the folder is as it should be is `guard`'s question.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from uuid import uuid4

from orchestrator.errors import WorkspaceError
from orchestrator.records import Finding, Status
from orchestrator.text import printable

KERNEL_BYTES = 1_000_000  # of a kernel file; the longest honest one known is a tenth of it
NAME_BYTES = 255  # of one component, the file system's own limit
NAME_DEPTH = 16
PATH_BYTES = 1024  # of a whole name: with the folder before it, well below the 4096 that the system takes


@contextmanager
def os_errors(doing: str) -> Iterator[None]:
    """The boundary of our own file operations: what the system refuses becomes a WorkspaceError that says what for."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"cannot {doing}: {error}; check the folder, its rights and the free space") from error


def read_kernel(tree: Path, kernel: str) -> bytes | None:
    """The kernel's bytes, or None where there is no readable ordinary file. Above KERNEL_BYTES, one byte more only."""
    with os_errors(f"read {kernel}"):
        return read_ordinary(tree / kernel, KERNEL_BYTES + 1)


def read_ordinary(path: Path, cap: int) -> bytes | None:
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
    too_long = len(raw) > NAME_DEPTH or any(len(part) > NAME_BYTES for part in raw) or len(b"/".join(raw)) > PATH_BYTES
    refusals = {
        "a name with a NUL": "\0" in name,
        "a name with a backslash": "\\" in name,
        "an absolute name": path.is_absolute(),
        "a name that is a folder's": not path.parts or name.endswith("/"),
        "a name that leaves the folder": ".." in path.parts,
        "a name inside a git repository's own folder": any(folded(part) == ".git" for part in path.parts),
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
        if not is_folder(folder):
            return f"not written: {printable(part)} on its way is {kind_of(folder)}"
    path = folder / name.name
    if path.is_symlink() or is_folder(path):
        return f"not written: there is already {kind_of(path)} of this name"
    # A new file in the old one's place: writing into a hard link would change the file it is a link to.
    path.unlink(missing_ok=True)
    _write_new(path, data)
    return ""


def write_whole(path: Path, text: str) -> None:
    """Writes a file of ours whole or not at all: a killed process leaves the old one, never half of the new one."""
    with os_errors(f"write {path}"):
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(text.encode("utf-8", "surrogatepass"))
        partial.replace(path)


def put_in_place(new: Path, place: Path) -> None:
    """Moves a folder of ours to its place. What stood there is gone only when the new one stands, and stands again
    where that fails or is interrupted.
    """
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-before-", dir=place.parent))
    before = beside / place.name
    try:
        if place.exists():
            place.rename(before)
        new.rename(place)
    except BaseException:
        if before.exists() and not place.exists():
            before.rename(place)
        with suppress(OSError):  # where it holds what stood there still, it stays
            beside.rmdir()
        raise
    shutil.rmtree(beside)


def remove_tree(tree: Path) -> None:
    """Removes a folder and all below it: links themselves and not what they lead to, folders nobody may write too."""
    with os_errors(f"remove {tree}"):
        if not is_folder(tree):
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


def kind_of(path: Path) -> str:
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


def folded(name: str) -> str:
    """What a careless file system or reader takes a name for: no case, no Unicode form, no invisible characters."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
