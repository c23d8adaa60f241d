"""A file that one process holds at a time; the system lets go of it when the process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from orchestrator.errors import UsageError


@contextmanager
def held(file: Path, refusal: str) -> Iterator[None]:
    """Hold it. Raises UsageError, which says `refusal`, where another process does."""
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UsageError(refusal) from None
    try:
        yield
    finally:
        lock.release()
