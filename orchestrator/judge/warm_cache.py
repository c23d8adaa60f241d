"""What Triton compiled of a kernel file, kept from a verdict on it to the next.

Compiling is most of a verdict on a GPU, and a file that passed is judged again: by `verify`, by a night, by a
measurement. What is kept was written by processes of that very file, under these versions and on this card, and is
given as a copy to processes of the same file alone. So it lets a file do nothing that it could not do itself, and
nothing is kept of an attempt that did not pass with every check on. Owns the folder; no candidate can write there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_MOST_BYTES = 128 << 20  # of one file's cache
_MOST_FILES = 64  # kernel files of which something is kept
_GROUPS = "__grp__*.json"  # each names the files of one kernel, by their whole paths
_HERE = b"<cache>"  # the cache's own path in them, wherever it is kept


class WarmCache:
    """The caches of one card and one set of versions."""

    def __init__(self, folder: Path, about: Mapping[str, str]) -> None:
        self._folder = folder
        self._about = json.dumps(dict(about), sort_keys=True).encode()

    def give(self, kernel: Path, cache: Path) -> bool:
        """Copy what is kept of this kernel file to where its process will look; whether there is anything.

        Half a copy is only found by half.
        """
        with suppress(OSError):
            return self._give(self._of(kernel), cache)
        return False

    def _give(self, kept: Path, cache: Path) -> bool:
        if not kept.is_dir():
            return False
        shutil.copytree(kept, cache, copy_function=shutil.copyfile)
        for group in cache.rglob(_GROUPS):
            group.write_bytes(group.read_bytes().replace(_HERE, os.fsencode(cache)))
        return True

    def take(self, kernel: Path, cache: Path) -> None:
        """Keep what its processes, which have ended, left there. Links are not followed. A folder that cannot be
        written costs time only, and must not cost a verdict."""
        with suppress(OSError):
            self._take(kernel, cache)

    def _take(self, kernel: Path, cache: Path) -> None:
        files, kept = list(_plain_files(cache)), self._of(kernel)
        new = [file for file in files if not (kept / file.relative_to(cache)).is_file()]
        if not new or sum(file.stat().st_size for file in files) > _MOST_BYTES:
            return
        part = kept.with_suffix(f".{os.getpid()}")
        if kept.is_dir():
            shutil.copytree(kept, part, copy_function=os.link)
        for file in new:
            copy = part / file.relative_to(cache)
            copy.parent.mkdir(parents=True, exist_ok=True)
            data = file.read_bytes()
            copy.write_bytes(data.replace(os.fsencode(cache), _HERE) if file.match(_GROUPS) else data)
        shutil.rmtree(kept, ignore_errors=True)
        part.replace(kept)
        self._forget_the_oldest()

    def forget(self, kernel: Path) -> None:
        """Keep nothing of this kernel file any more."""
        with suppress(OSError):
            shutil.rmtree(self._of(kernel), ignore_errors=True)

    def _of(self, kernel: Path) -> Path:
        return self._folder / hashlib.sha256(kernel.read_bytes() + self._about).hexdigest()

    def _forget_the_oldest(self) -> None:
        newest_first = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in newest_first[_MOST_FILES:]:
            shutil.rmtree(folder, ignore_errors=True)


def _plain_files(folder: Path) -> Iterator[Path]:
    """Regular files below it, by folders that are no links; none below a link."""
    if folder.is_symlink():
        return
    for place, _, names in os.walk(folder, followlinks=False):
        for name in names:
            path = Path(place) / name
            if stat.S_ISREG(path.lstat().st_mode):
                yield path
