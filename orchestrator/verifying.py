"""Kernel files judged by themselves: no model, no git, one warm judge for all of them.

Owns reading the files, the order in which they are judged, and what their verdicts come to as an exit code. A file may
have any name: it is judged as the op's kernel file, beside a fresh rendering of the op's other files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator import records, repro
from orchestrator.attempt import Export, judge_kernel, require_sandbox
from orchestrator.config import JudgeSettings
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.records import Judging, Record, Report, Status
from orchestrator.text import printable
from orchestrator.tree import KERNEL_BYTES, kind_of, lay_out, os_errors
from orchestrator.workspace import attempt_folder

STDIN = "-"


@dataclass(frozen=True)
class KernelFile:
    """A file to judge. Of one that is too long for a kernel, the first bytes only."""

    name: str  # as it was given; bytes that are no text are escaped
    data: bytes

    @property
    def sha256(self) -> str | None:
        """Of the file; None where it was not read to the end."""
        return hashlib.sha256(self.data).hexdigest() if len(self.data) <= KERNEL_BYTES else None


@dataclass(frozen=True)
class Verified(Record):
    """The verdict on one file."""

    file: str
    sha256: str | None
    report: Report


class Watch(Protocol):
    """Told of each step as it happens."""

    def verifying(self, judging: Judging) -> None:
        """The judge is ready."""

    def verifying_file(self, file: str) -> None:
        """This file is next."""

    def verified(self, file: str, report: Report) -> None:
        """It has its verdict."""


def read(names: Sequence[str]) -> tuple[KernelFile, ...]:
    """The files of these names, all of them before anything is judged; raises UsageError for what is no file.

    `-` is standard input. A link is followed: these are a person's own files.
    """
    content = {name: _stdin() if name == STDIN else _content(Path(name)) for name in dict.fromkeys(names)}
    return tuple(KernelFile(os.fsencode(name).decode(errors="backslashreplace"), content[name]) for name in names)


async def verify(
    files: Sequence[KernelFile],
    op: Op,
    executor: Executor,
    settings: JudgeSettings,
    watch: Watch,
    scripts: Path | None = None,
) -> tuple[Verified, ...]:
    """The verdicts, in the order of the files. Into `scripts` goes a repro for each failure that was run.

    A failure of ours while one file is judged is that file's INFRASTRUCTURE, and the next one is judged.
    """
    judging = await executor.start()
    if settings.require_sandbox:
        require_sandbox(judging)
    watch.verifying(judging)
    results: list[Verified] = []
    for file in files:
        watch.verifying_file(file.name)
        report = await _judged(file.data, op, executor, settings)
        results.append(Verified(file.name, file.sha256, report))
        watch.verified(file.name, report)
        if scripts is not None and (text := repro.script(op, file.data, report)):
            _write(scripts, file.name, len(results), text)
    return tuple(results)


def exit_code(results: Sequence[Verified]) -> int:
    """0 all passed, 1 one did not, 3 one could not be judged and the reason is ours."""
    statuses = {result.report.status for result in results}
    return 3 if Status.INFRASTRUCTURE in statuses else int(statuses != {Status.PASSED})


def summary(results: Sequence[Verified], scripts: Path | None) -> str:
    """What it comes to, in one line, and where the repro scripts are or how to get them."""
    passed = sum(result.report.passed for result in results)
    text = f"{passed} of {len(results)} passed"
    if not any(runs_again(result.report) for result in results):
        return text
    return (
        f"{text}; {'--repro DIR writes a script' if scripts is None else f'scripts in {scripts}'} for each failing case"
    )


def runs_again(report: Report) -> bool:
    """Whether there is a repro for it."""
    return not report.passed and bool(report.nonce)


def to_json(results: Sequence[Verified]) -> str:
    """A JSON list of {file, sha256, report}."""
    return json.dumps([json.loads(records.to_json(result)) for result in results], indent=2)


@contextmanager
def judge_log() -> Iterator[Path]:
    """A place for what the judge itself prints; kept where our machinery failed, since the error then names it."""
    with os_errors("make a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="orchestrator-verify-"))
    try:
        yield folder / "judge.log"
    except InfrastructureError:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_or_temporary(out: Path | None) -> Iterator[Path]:
    """A folder for evidence: a new one in `out`, or one that is gone afterwards."""
    if out is None:
        with attempt_folder({}) as folder:
            yield folder
        return
    with os_errors(f"make a folder in {out}"):
        out.mkdir(parents=True, exist_ok=True)
        kept = Path(tempfile.mkdtemp(prefix="bench-", dir=out))
    yield kept


def rendering(op: Op) -> Export:
    """What lays a kernel into a folder beside a fresh rendering of the op's other files."""

    def export(into: Path, name: str, data: bytes) -> None:
        lay_out({**op.workspace_files(), name: data}, into)

    return export


async def _judged(kernel: bytes, op: Op, executor: Executor, settings: JudgeSettings) -> Report:
    try:
        with attempt_folder({}) as folder:
            return await judge_kernel(kernel, op, rendering(op), executor, settings, folder)
    except InfrastructureError as error:
        return Report(Status.INFRASTRUCTURE, printable(str(error), 400))


def _content(path: Path) -> bytes:
    shown = printable(str(path))
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a named pipe must not hold us up
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise UsageError(f"{shown} is {kind_of(path.resolve())}, not a file; `{STDIN}` reads standard input")
        with os.fdopen(handle, "rb") as file:
            return file.read(KERNEL_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"no file {shown}; give the path of a kernel file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} cannot be read: {printable(str(error))}") from error


def _stdin() -> bytes:
    try:
        return sys.stdin.buffer.read(KERNEL_BYTES + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error}") from error


def scripts_folder(path: Path) -> Path:
    """The folder for repro scripts, made if it is not there; raises UsageError where nothing can be written into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise UsageError(f"--repro {printable(str(path))}: {printable(str(error))}; name a folder") from error
    return path


def _write(folder: Path, name: str, number: int, text: str) -> None:
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", Path(name).stem)[:60] if name != STDIN else "stdin"
    with os_errors(f"write into {folder}"):
        (folder / f"repro-{number:02}-{stem}.py").write_text(text, encoding="utf-8", newline="")
