"""The contract of everything that proposes kernels. One provider a file; this one holds what they share.

An agent gets a prompt and returns the model's words, or works in a copy of the tree and leaves that. It sees no
repository, and its word on correctness counts for nothing: guard, policy and judge decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from orchestrator.errors import AgentError
from orchestrator.records import Prompt, Reply


@dataclass(frozen=True)
class Request:
    """One question to an agent."""

    prompt: Prompt
    stage: str  # "correct", ...
    round: int  # 1, 2, 3 within the stage; 0 where no model is asked: a person's kernel
    folder: Path  # the attempt's folder in the run's record; an agent that talks through files does it here
    files: Mapping[str, bytes] = field(default_factory=dict)  # the tree as the attempt begins: the baseline, a kernel
    sample: int = 1  # of those that are asked for at once in the round


class Wordless(AgentError):
    """The model was asked and paid, and said nothing: it declined, or used its tokens up. `reply` is what that cost."""

    def __init__(self, said: str, reply: Reply) -> None:
        super().__init__(said)
        self.reply = reply


class Agent(Protocol):
    """Whatever answers a prompt with a proposal."""

    name: str

    async def propose(self, request: Request) -> Reply:
        """Answer the request.

        Raises AgentError when no answer could be had (Wordless when one without a word was paid), UsageError when the
        configuration cannot work (a wrong key, an unknown model, recorded replies that have run out).
        """
        ...
