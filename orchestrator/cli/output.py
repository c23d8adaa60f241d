"""What a command prints, also where nobody takes it: a pipe that was closed, a disk that is full.

Owns that the work goes on without output. A reader who has left, as `head` does, is no error; what could not be written
for another reason is said at the end.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Lasting(io.FileIO):
    """A stream that takes everything: what cannot be passed on is gone, and why is kept."""

    lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """All of it, once something was lost."""
        if self.lost is None:
            try:
                return super().write(data)
            except OSError as error:
                self.lost = error
        return memoryview(data).nbytes


class Output:
    """The standard streams as they are written to meanwhile."""

    def __init__(self, stdout: TextIO, stderr: TextIO) -> None:
        self._raw, self.stdout = _wrapped(stdout)
        _, self.stderr = _wrapped(stderr)

    @property
    def lost(self) -> OSError | None:
        """Why part of the standard output was lost; None also where its reader has left."""
        self.stdout.flush()
        return None if isinstance(self._raw.lost, BrokenPipeError) else self._raw.lost


@contextmanager
def lasting() -> Iterator[Output | None]:
    """While it lasts, nothing fails because it cannot be printed. None where a stream was closed from the beginning."""
    before = sys.stdout, sys.stderr
    if None in before:
        yield None
        return
    output = Output(*before)
    sys.stdout, sys.stderr = output.stdout, output.stderr
    try:
        yield output
    finally:
        output.stdout.flush()
        output.stderr.flush()
        sys.stdout, sys.stderr = before


def _wrapped(stream: TextIO) -> tuple[_Lasting, TextIO]:
    raw = _Lasting(stream.fileno(), "wb", closefd=False)
    buffer = io.BufferedWriter(raw)
    return raw, io.TextIOWrapper(buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
