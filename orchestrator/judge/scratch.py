"""The folder that a candidate may fill as it likes: measuring it without being fooled.

Owns nothing about where it lies. Never follows a link, and expects names, modes and depths chosen to break a walk.
"""

from __future__ import annotations

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
