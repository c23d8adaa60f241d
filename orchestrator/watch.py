"""What a running loop tells whoever watches it. The terminal is one watcher; silence is another."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from orchestrator.records import Attempt, Judging, Reply, Run


class Watch(Protocol):
    """Told of each step as it happens. Must not raise and must not take long."""

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """The baseline is committed; nothing has been asked yet."""

    def asking(self, stage: str, round_: int) -> None:
        """A prompt goes to the model."""

    def judging(self, reply: Reply) -> None:
        """The reply is here and is being judged."""

    def judged(self, attempt: Attempt) -> None:
        """The attempt has its verdict."""

    def measuring(self, text: str) -> None:
        """A passed kernel is being timed; `text` says how far it is, in one line."""

    def decided(self, run: Run, folder: Path) -> None:
        """The run is over."""


class Silent:
    """Watches nothing; for programs that read the record instead."""

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None: ...

    def asking(self, stage: str, round_: int) -> None: ...

    def judging(self, reply: Reply) -> None: ...

    def judged(self, attempt: Attempt) -> None: ...

    def measuring(self, text: str) -> None: ...

    def decided(self, run: Run, folder: Path) -> None: ...
