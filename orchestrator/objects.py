"""The objects of a repository of ours, read and written in this process: a git command each would cost milliseconds.

Owns the bytes of blobs, flat trees and commits, through gitdb, on which GitPython stands. Refs and histories are not
here: git itself moves the one and reads the other. What is not loose, since somebody packed the repository, git reads.
"""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import WorkspaceError
from orchestrator.text import printable
from orchestrator.tree import os_errors

_FILE = "100644"
_NO_FILES = ("40000", "160000")  # a folder, another repository
_NAME_BYTES = 20


@dataclass(frozen=True)
class Objects:
    """Those of one repository. `git` runs a git command there."""

    repository: Path
    git: Callable[..., bytes]

    def blob(self, data: bytes) -> str:
        """Write a file's content; returns its name, as do the others."""
        return self._write(b"blob", data)

    def tree(self, entries: Mapping[str, str]) -> str:
        """Write a folder of plain files: blob by name."""
        ordered = sorted((name.encode(), blob) for name, blob in entries.items())
        lines = [f"{_FILE} ".encode() + name + b"\0" + bytes.fromhex(blob) for name, blob in ordered]
        return self._write(b"tree", b"".join(lines))

    def commit(self, tree: str, parents: tuple[str, ...], who: str, message: str) -> str:
        """Write a commit that was made now by `who`, "name <email>"."""
        person = f"{who} {int(time.time())} {time.strftime('%z')}"
        head = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {person}", f"committer {person}"]
        text = "\n".join([*head, "", message.rstrip("\n")]) + "\n"
        return self._write(b"commit", text.encode("utf-8", "backslashreplace"))

    def read(self, blob: str) -> bytes:
        """A file's content."""
        return self._read("blob", blob)

    def entries(self, commit: str) -> dict[str, str]:
        """Blob by name of a commit's tree, which is flat."""
        head = self._read("commit", commit).partition(b"\n")[0]
        data, found = self._read("tree", head.removeprefix(b"tree ").decode()), {}
        while data:
            label, _, rest = data.partition(b"\0")
            mode, _, name = label.decode("utf-8", "surrogateescape").partition(" ")
            if mode in _NO_FILES:
                raise WorkspaceError(f"{commit} in {self.repository} holds {printable(name)}, which is no file of ours")
            found[name], data = rest[:_NAME_BYTES].hex(), rest[_NAME_BYTES:]
        return found

    def _write(self, kind: bytes, data: bytes) -> str:
        from gitdb import IStream, LooseObjectDB  # not at import, as git is not

        with os_errors(f"write into {self.repository}"):
            stored = LooseObjectDB(str(self.repository / "objects")).store(IStream(kind, len(data), io.BytesIO(data)))
        return str(stored.hexsha.decode())

    def _read(self, kind: str, name: str) -> bytes:
        from gitdb import LooseObjectDB
        from gitdb.exc import BadObject

        try:
            found = LooseObjectDB(str(self.repository / "objects")).stream(bytes.fromhex(name))
            data = bytes(found.read())
        except (BadObject, ValueError):  # not loose, or a name that git resolves
            return self.git("cat-file", kind, name)
        except (OSError, zlib.error) as error:
            raise WorkspaceError(f"the object {name} in {self.repository} is damaged: {error}") from error
        if found.type != kind.encode() or len(data) != found.size:
            raise WorkspaceError(f"the object {name} in {self.repository} is damaged, or no {kind}")
        return data
