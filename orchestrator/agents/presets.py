"""What is known of a command-line agent before it is started: how it is asked, which keys it gets, what it may touch.

Owns the format of configs/agents/*.yaml and finding one for a command. A preset grants; what it does not name, an agent
does not get.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from orchestrator import resources, yamlfile
from orchestrator.errors import UsageError

PROMPT_FILE = "{prompt}"  # in a command: the path of a file that holds the prompt


class Preset(BaseModel):
    """One agent's file. Paths may begin with ~."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[str, Field(min_length=1)]
    source: str = ""  # where its options were read, and when
    prompt: Literal["stdin", "file"] = "stdin"
    model: str = ""  # how it is told which model to take: "--model {model}"
    keys: tuple[
        str, ...
    ] = ()  # environment variables that it gets where they are set; one must be, unless it is granted
    environment: dict[str, str] = {}  # variables with a value that is no secret
    network: bool = False
    reads: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()  # reads and writes, such as ~/.claude; shown to it at the same place of its own home
    leaves: tuple[str, ...] = ()  # files of its own, by pattern, that it puts into the folder it works in

    def words(self, model: str | None) -> tuple[str, ...]:
        """The command line. Raises UsageError where a model is named and it cannot be told."""
        if model is not None and not self.model:
            raise UsageError(f"--model {model}: the preset of {self.command!r} does not say how to pass it on (model:)")
        told = "" if model is None else self.model.format(model=shlex.quote(model))
        try:
            return tuple(shlex.split(f"{self.command} {told}"))
        except ValueError as error:
            raise UsageError(f"the command {self.command!r} cannot be split into words: {error}") from error


def find(command: str | None, preset: str | None) -> tuple[Preset, str]:
    """The preset, and where it is from.

    `preset` is a shipped one's name or a file; without one, the shipped one that is called as `command` or its program
    is. `command` is run in the place of the preset's own, unless it is just that name.
    """
    if command is None and preset is None:
        raise UsageError(
            f"the agent 'command' needs to know what to run: --command LINE, or one of {', '.join(names())}"
        )
    words = command.split() if command is not None else []
    if preset is None and words and (name := Path(words[0]).name) in names():
        preset = name
    if preset is None:
        return Preset(command=str(command)), "no preset: no key, no network"
    path = Path(preset) if "/" in preset or preset.endswith((".yaml", ".yml")) else _shipped() / f"{preset}.yaml"
    found = _read(path)
    own = command is not None and words != [path.stem]
    return (found.model_copy(update={"command": command}) if own else found), f"preset {path}"


def names() -> list[str]:
    """The shipped ones."""
    return sorted(path.stem for path in _shipped().glob("*.yaml"))


def _shipped() -> Path:
    return resources.shipped("configs") / "agents"


def _read(path: Path) -> Preset:
    if not os.access(path, os.F_OK):
        raise UsageError(f"there is no preset {path}; shipped are {', '.join(names())}")
    called = f"the preset {path}"
    return yamlfile.checked(TypeAdapter(Preset), yamlfile.read(path, called), called)
