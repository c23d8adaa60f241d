"""Room on the disk, and folders that can be written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from orchestrator.doctor.condition import SAID_CHARS, Asked, Condition, State
from orchestrator.text import printable

_SPARE_BYTES = 100 << 20  # under this not even a run's record is sure to be written


def disk(asked: Asked) -> Condition:
    """Room for the record of a run, and that it can be written."""
    needed = asked.settings.judge.limits.scratch_mb << 20
    return _room("disk", asked.workspaces.absolute(), needed, "give --workspaces DIR on a disk that has room")


def temporary(_: Asked) -> Condition:
    """Room for the temporary folders in which replies become files."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        said = printable(str(error), SAID_CHARS)
        return Condition(
            "temporary files", State.LACKING, said, "set TMPDIR to a folder that can be written", essential=True
        )
    return _room("temporary files", folder, _SPARE_BYTES, "set TMPDIR to a folder on a disk that has room")


def _room(name: str, folder: Path, needed: int, advice: str) -> Condition:
    shown = printable(str(folder))
    if problem := unwritable(folder):
        return Condition(name, State.LACKING, f"{shown} cannot be written: {problem}", advice, essential=True)
    free = shutil.disk_usage(_existing(folder)).free
    said = f"{shown}: {free / 2**30:.1f} GiB free"
    if free < needed:
        said += f"; one candidate may write {needed / 2**30:.1f} GiB"
        return Condition(name, State.LACKING, said, advice, essential=free < _SPARE_BYTES)
    return Condition(name, State.OK, said)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def unwritable(folder: Path) -> str:
    """Why a file cannot be made in the folder or, where it is not there yet, in what it would be made in."""
    try:
        with tempfile.NamedTemporaryFile(dir=_existing(folder), prefix=".doctor-"):
            return ""
    except OSError as error:
        return error.strerror or str(error)
