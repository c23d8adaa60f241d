"""Whose code is asking: the candidate's host code, or Triton's own.

Owns the walk up the stack. The innermost frame that belongs neither to torch, nor to the standard library, nor to this
package decides: in Triton's files it is Triton (its autotuner, its interpreter), anywhere else it is the candidate. A
grid, a pre_hook or a heuristic that the candidate wrote has the kernel file as innermost frame, although Triton called
it. Code of no known file (an exec'd string, another module) is the candidate's too, at the line that led there.

Cannot see: code compiled under the name of one of Triton's files.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch
import triton

_SKIPPED, _KERNEL, _TRITON, _OTHER = range(4)
_MOST_FILES = 4096  # names that are remembered: a candidate may invent any number
_TEXT = 160  # characters of a source line


def _folder(path: str | None) -> str:
    return os.path.realpath(path or "") + os.sep


_PACKAGE = Path(__file__).parent
_TRITON_FOLDER = _folder(os.path.dirname(triton.__file__ or ""))  # noqa: PTH120 - a prefix to compare, as text
TORCH_FOLDER = _folder(os.path.dirname(torch.__file__ or ""))  # noqa: PTH120
_OURS = _folder(str(_PACKAGE))
REPAIRS = _folder(str(_PACKAGE.parent / "interpreter"))  # of Triton's interpreter; wrap torch's functions too
_LIBRARY = _folder(sysconfig.get_paths()["stdlib"])
_SITES = tuple(_folder(sysconfig.get_paths()[name]) for name in ("purelib", "platlib"))


class Origin(NamedTuple):
    """Who asked, and the line of the kernel file nearest to it (0: none on the stack)."""

    candidate: bool
    line: int


class Origins:
    """Tells origins for one kernel file."""

    def __init__(self, kernel: str) -> None:
        self.names = frozenset((kernel, os.path.realpath(kernel)))
        self._kinds: dict[str, int] = {}
        self._lines = _source_lines(kernel)

    def of(self, frame: FrameType | None) -> Origin:
        """The origin of what runs in `frame`."""
        while frame is not None:
            kind = self._kind(frame.f_code.co_filename)
            if kind == _KERNEL:
                return Origin(True, frame.f_lineno)
            if kind != _SKIPPED:
                return Origin(kind == _OTHER, self._nearest(frame.f_back))
            frame = frame.f_back
        return Origin(True, 0)

    def text(self, line: int) -> str:
        """That line of the kernel file, as it was before the file was imported."""
        return self._lines[line - 1].strip()[:_TEXT] if 0 < line <= len(self._lines) else ""

    def _nearest(self, frame: FrameType | None) -> int:
        while frame is not None:
            if frame.f_code.co_filename in self.names:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def _kind(self, name: str) -> int:
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) > _MOST_FILES:
                self._kinds.clear()
            kind = self._kinds[name] = self._classify(name)
        return kind

    def _classify(self, name: str) -> int:
        if name in self.names:
            return _KERNEL
        real = os.path.realpath(name)
        if real.startswith(_TRITON_FOLDER):
            return _TRITON
        if real.startswith((TORCH_FOLDER, _OURS, REPAIRS)) or name.startswith("<frozen "):
            return _SKIPPED
        return _SKIPPED if real.startswith(_LIBRARY) and not real.startswith(_SITES) else _OTHER


def _source_lines(kernel: str) -> list[str]:
    try:
        return Path(kernel).read_bytes().decode(errors="replace").splitlines()
    except OSError:
        return []
