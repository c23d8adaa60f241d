"""The folder that a candidate may fill as it likes: measuring it and removing it without being fooled.

Owns nothing about where it lies. Never follows a link, and expects names, modes and depths chosen to break a walk.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

_BLOCK_BYTES = 512  # the unit of st_blocks, whatever the file system's own block is


def excess(scratch: Path, max_bytes: int, max_files: int) -> str:
    """Why the folder holds too much, in words; empty when it does not.

    A folder that cannot be listed, or lies too deep for a path, counts as too much: its content cannot be measured.
    Files deleted while open are not seen.
    """
    held, files, waiting = 0, 0, [os.fspath(scratch)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    held += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # changed while being walked
        except OSError as error:
            return f"a folder in scratch cannot be measured ({error.strerror})"
        if held > max_bytes:
            return f"more than {held >> 20} MiB in scratch; the limit is {max_bytes >> 20} MiB"
        if files > max_files:
            return f"more than {max_files} files in scratch"
    return ""


def remove(scratch: Path) -> None:
    """Removes the folder, however deep and whatever its modes. No process may be writing in it any more.

    Folders are moved up to the top one by one, so that neither recursion nor the length of a path grows with depth.
    """
    numbers = itertools.count()
    while children := list(os.scandir(scratch)):
        for child in children:
            if child.is_dir(follow_symlinks=False):
                _empty_into(Path(child.path), scratch, numbers)
            else:
                Path(child.path).unlink()
    scratch.rmdir()


def _empty_into(folder: Path, top: Path, numbers: itertools.count[int]) -> None:
    """Removes a folder of `top`; its own folders become folders of `top`."""
    folder.chmod(0o700)
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            target = next(path for n in numbers if not os.path.lexists(path := top / f"moved-{n}"))
            Path(entry.path).chmod(0o700)  # moving a folder writes in it
            Path(entry.path).rename(target)
        else:
            Path(entry.path).unlink()
    folder.rmdir()
