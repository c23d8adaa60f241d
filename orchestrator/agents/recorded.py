"""The agent that replays replies a model once gave, so that the loop can be seen at work without a key.

Owns the format of an op's `recorded/` folder: `<stage>-<round>.md`, each a raw reply, further ones of a round as
`<stage>-<round>.2.md` and so on, and `recorded.yaml`, which says of each file where it came from. Calls no model, and
says so.
"""

from __future__ import annotations

import time
from datetime import date as Date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter

from orchestrator import yamlfile
from orchestrator.agents import Request
from orchestrator.agents.keys import ANTHROPIC_KEY, OPENAI_KEY, OPENAI_URL
from orchestrator.errors import UsageError
from orchestrator.records import Reply, Usage

INDEX = "recorded.yaml"


class RepliesExhausted(UsageError):
    """No reply was recorded for the stage, round and sample that the loop has come to."""


class Entry(BaseModel):
    """Where one recorded reply came from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    model: str
    date: Date
    prompt_sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    note: str = ""


class RecordedAgent:
    """Answers a stage, round and sample with its file, unedited. Raises UsageError for a broken folder."""

    name = "recorded"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = {entry.file: entry for entry in _load(folder / INDEX)}

    def describe(self) -> str:
        """One line: that it replays, what, and from when."""
        models = ", ".join(sorted({entry.model for entry in self._entries.values()}))
        dates = sorted({entry.date for entry in self._entries.values()})
        when = f"{dates[0]}" if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        return f"replays recorded replies of {models} ({when}) from {self._folder} and calls no model"

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`. Raises RepliesExhausted when there is none."""
        started = time.monotonic()
        further = request.sample > 1
        path = self._folder / f"{request.stage}-{request.round}{f'.{request.sample}' if further else ''}.md"
        if not path.is_file():
            missing = Path(*path.parts[-3:])  # the message is pasted into records
            raise RepliesExhausted(
                f"no reply was recorded for stage {request.stage!r}, round {request.round}"
                f"{f', sample {request.sample}' if further else ''} ({missing}); to go on, choose another agent: "
                f"anthropic ({ANTHROPIC_KEY}), openai ({OPENAI_KEY} or {OPENAI_URL}) or inbox"
            )
        entry = self._entries.get(path.name)
        if entry is None:
            raise UsageError(f"{path} is not in {INDEX}; say there which model gave it, when, and to which prompt")
        # No request was made; tokens and cost of the day it was recorded are not those of this run.
        return Reply(_read(path), entry.model, Usage(latency_s=time.monotonic() - started, requests=0))


def _load(index: Path) -> tuple[Entry, ...]:
    entries = yamlfile.checked(TypeAdapter(tuple[Entry, ...]), yamlfile.read(index, str(index)), str(index))
    missing = [entry.file for entry in entries if not (index.parent / entry.file).is_file()]
    if missing or not entries:
        raise UsageError(f"{index} names {', '.join(missing) or 'no reply'}, which is not there")
    return entries


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()  # not read_text, which changes line ends
    except OSError as err:
        raise UsageError(f"{path} cannot be read: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise UsageError(f"{path} is not UTF-8 text") from err
