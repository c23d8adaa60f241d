"""Results of compiling, kept from verdict to verdict in a folder of the judge's that no candidate can write."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from orchestrator.judge.ahead.records import CompileResult, Specialization, result_from_json

_FORM = 6  # of what is kept; another one is none


class Cache:
    """What compiling said of the kernels in one source file under one version of triton."""

    def __init__(self, folder: Path, source: bytes, triton_version: str) -> None:
        self._folder = folder
        self._about = (hashlib.sha256(source).hexdigest(), triton_version)

    def known(self, specialization: Specialization, target: str) -> CompileResult | None:
        """The result of an earlier time, or None."""
        try:
            return replace(result_from_json(self._file(specialization, target).read_text()), cached=True)
        except (OSError, ValueError):
            return None

    def keep(self, specialization: Specialization, target: str, result: CompileResult) -> None:
        """Remember it; what could not be tried is tried again next time. A folder that cannot be written costs time
        only, and must not cost a verdict."""
        if result.limit:
            return
        file = self._file(specialization, target)
        part = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_text(result.to_json())
            part.replace(file)

    def _file(self, specialization: Specialization, target: str) -> Path:
        key = json.dumps([_FORM, *self._about, specialization.to_json(), target])
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
