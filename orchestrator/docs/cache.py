"""The documentation cache: three pages in a folder, made anew when they are missing or of another Triton.

Owns the folder's files and the process that tells the names of the installed Triton. The guide is of the Triton that
is installed here: for one that judges elsewhere in another version there is none.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.docs import pages
from orchestrator.docs.guide import Entry, Guide, from_markdown, guide_of, to_markdown
from orchestrator.errors import JudgeError, OrchestratorError
from orchestrator.executors.local import judge_environment
from orchestrator.text import printable
from orchestrator.tree import os_errors, write_whole

GUIDE = "triton-lang-guide.md"
_NAMES = (sys.executable, "-m", "orchestrator.judge.names")
_LIMIT_S = 60


def make(folder: Path, site: str | None) -> tuple[Guide, list[str]]:
    """Write all pages anew; the guide, and a line for each page that says where it is from.

    `site` is where Triton's documentation is; None: no network is asked. Raises OrchestratorError where the folder
    cannot be written or no Triton can be imported.
    """
    guide, date = installed(), f"{datetime.now(UTC):%Y-%m-%d}"
    made = f"Generated from the package that is installed here, {date}: signatures and docstrings are its own."
    with os_errors(f"make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{folder / GUIDE}: Triton {guide.version} as it is installed here, {len(guide.entries)} names"]
    for name in (pages.TUTORIALS, pages.PRACTICES):
        page = pages.page(name, site, date)
        write_whole(folder / name, page.text)
        lines.append(f"{folder / name}: from {page.source}")
    write_whole(folder / GUIDE, to_markdown(guide, made))  # last: where it is, the rest is too
    return guide, lines


def kept(folder: Path) -> Guide | None:
    """The guide that lies in the folder, or None."""
    try:
        found = (folder / GUIDE).stat()
        return _read(folder / GUIDE, (found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, UnicodeDecodeError):
        return None


@functools.lru_cache(maxsize=2)  # the runs of a batch have one, not one each: thousands of objects
def _read(page: Path, as_of: tuple[int, int, int]) -> Guide | None:
    """The guide on a page; one of another inode, size or time is another page."""
    return from_markdown(page.read_text(encoding="utf-8"))


def ready(version: str, folder: Path) -> Guide | None:
    """The guide of the Triton that judges, made if it is not there; None where another version is installed here.

    A run depends on no network and on no folder that can be written: what cannot be kept is told all the same.
    """
    if (guide := kept(folder)) is not None and guide.version == version:
        return guide
    with suppress(OrchestratorError):
        guide, _ = make(folder, site=None)
        return guide if guide.version == version else None
    with suppress(OrchestratorError):
        guide = installed()
        return guide if guide.version == version else None
    return None


@functools.cache  # it stays the same for as long as this process runs, and costs a process that imports Triton
def installed() -> Guide:
    """The guide of the installed Triton, as a process of the judge's tells it. Raises JudgeError."""
    try:
        result = subprocess.run(
            _NAMES, env=judge_environment(), capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JudgeError(f"the names of the installed Triton cannot be told: {printable(str(error))}") from error
    if result.returncode:
        said = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise JudgeError(
            f"triton cannot be imported here: {printable(said)}; `python -m orchestrator doctor` says more"
        )
    told = json.loads(result.stdout.splitlines()[-1])
    return guide_of(told["version"], (Entry(**entry) for entry in told["entries"]))
