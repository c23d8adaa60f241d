"""What a check is asked and what it answers, and the time that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchestrator import gpu
from orchestrator.config import Settings

LIMIT_S = 4.0  # for all checks together
SAID_CHARS = 300  # of what a tool, an exception or a file said


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    LACKING = "lacking"
    UNNEEDED = "not needed here"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Condition:
    """One property of the machine."""

    name: str
    state: State
    said: str
    advice: str = ""
    essential: bool = False  # the loop cannot do without it

    @property
    def stops(self) -> bool:
        """Whether no run can work here because of it."""
        return self.essential and self.state is State.LACKING


@dataclass(frozen=True)
class Asked:
    """The run that is asked about."""

    settings: Settings
    workspaces: Path

    @property
    def gpu(self) -> bool:
        """Whether its kernels would run on a GPU: the judge's own choice."""
        return self.settings.judge.device != "cpu" and gpu.present()


Check = Callable[[Asked], Condition]


def silent(name: str, advice: str, limit_s: float = LIMIT_S) -> Condition:
    """What has not answered in time: not known."""
    return Condition(name, State.UNKNOWN, f"did not answer within {limit_s:g} s", advice)
