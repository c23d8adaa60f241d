"""What a running loop tells whoever watches it. The terminal is one watcher; silence is another."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from orchestrator.measured import Measured
from orchestrator.records import Attempt, Judging, Reply, Run


class Watch(Protocol):
    """Told of each step as it happens. Must not raise and must not take long."""

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """The baseline is committed; nothing has been asked yet."""

    def asking(self, number: int, stage: str, round_: int) -> None:
        """The prompt of the attempt of that number goes to the model; others of the round may be under way."""

    def answered(self, number: int, reply: Reply) -> None:
        """The reply is here, in whichever order those of a round come."""

    def judging(self, number: int) -> None:
        """It is being judged, one after the other."""

    def judged(self, attempt: Attempt) -> None:
        """The attempt has its verdict."""

    def measuring(self, text: str) -> None:
        """A passed kernel is being timed; `text` says how far it is, in one line."""

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        """That attempt was timed; `number` counts the run's measurements."""

    def decided(self, run: Run, folder: Path) -> None:
        """The run is over."""

    def recorded(self, run: Run) -> None:
        """The run's record on disk is this one now."""

    def merged(self, run: Run, commit: str) -> None:
        """The run's kernel is the champion, by that commit on main."""


class Silent:
    """Watches nothing; for programs that read the record instead."""

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None: ...

    def asking(self, number: int, stage: str, round_: int) -> None: ...

    def answered(self, number: int, reply: Reply) -> None: ...

    def judging(self, number: int) -> None: ...

    def judged(self, attempt: Attempt) -> None: ...

    def measuring(self, text: str) -> None: ...

    def measured(self, number: int, attempt: int, measured: Measured) -> None: ...

    def decided(self, run: Run, folder: Path) -> None: ...

    def recorded(self, run: Run) -> None: ...

    def merged(self, run: Run, commit: str) -> None: ...


class Several:
    """Tells several watchers, in order."""

    def __init__(self, *watches: Watch) -> None:
        self._watches = watches

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        for watch in self._watches:
            watch.run_started(run, folder, judging)

    def asking(self, number: int, stage: str, round_: int) -> None:
        for watch in self._watches:
            watch.asking(number, stage, round_)

    def answered(self, number: int, reply: Reply) -> None:
        for watch in self._watches:
            watch.answered(number, reply)

    def judging(self, number: int) -> None:
        for watch in self._watches:
            watch.judging(number)

    def judged(self, attempt: Attempt) -> None:
        for watch in self._watches:
            watch.judged(attempt)

    def measuring(self, text: str) -> None:
        for watch in self._watches:
            watch.measuring(text)

    def measured(self, number: int, attempt: int, measured: Measured) -> None:
        for watch in self._watches:
            watch.measured(number, attempt, measured)

    def decided(self, run: Run, folder: Path) -> None:
        for watch in self._watches:
            watch.decided(run, folder)

    def recorded(self, run: Run) -> None:
        for watch in self._watches:
            watch.recorded(run)

    def merged(self, run: Run, commit: str) -> None:
        for watch in self._watches:
            watch.merged(run, commit)
