"""A batch as a person sees it: how many ops are done, what the others wait for, the money, and a table at the end.

In a terminal one line that is kept up to date, elsewhere a line an op that ended. Owns no facts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner
from rich.table import Table

from orchestrator.outcome import Outcome, fast
from orchestrator.records import Judging, Run
from orchestrator.text import printable
from orchestrator.watch import Silent

_MODEL, _JUDGE, _MEASURE = "waiting for the model", "being judged", "being measured"


class Progress:
    """Tells how far a batch is. Quiet, it tells nothing but the end."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._doing: dict[str, str] = {}  # by op
        self._total = self._done = self._before = 0
        self._usd: Callable[[], float] = lambda: 0.0
        self._queued: Callable[[], int] = lambda: 0
        self._begun = time.monotonic()
        self._spinner: Spinner | None = None

    def begin(self, total: int, usd: Callable[[], float], queued: Callable[[], int]) -> None:
        """So many ops; where to ask for the money spent and the jobs that wait for a judge."""
        self._total, self._usd, self._queued = total, usd, queued
        if self._console.is_terminal and not self._quiet:
            self._spinner = self._console.status("")
            self._spinner.start()
        self._show()

    def say(self, text: str) -> None:
        """A line of its own, whatever the text holds."""
        if not self._quiet:
            self._console.print(escape(printable(text, 1000)), soft_wrap=True, highlight=False)

    def doing(self, op: str, what: str) -> None:
        """What an op waits for now."""
        self._doing[op] = what
        self._show()

    def ended(self, outcome: Outcome, *, earlier: bool) -> None:
        """An op is over, now or before this process began."""
        self._doing.pop(outcome.op, None)
        self._done += 1
        self._before += earlier
        if not earlier:
            self.say(f"{outcome.op}: {outcome.decision}: {outcome.reason}")
        self._show()

    def line(self) -> str:
        """Everything in one line."""
        counts = Counter(self._doing.values())
        parts = [f"{self._done} of {self._total} ops done"]
        parts += [f"{count} {what}" for what, count in sorted(counts.items())]
        parts += [f"{self._queued()} jobs wait for a judge"] if self._queued() else []
        parts += [f"{self._usd():.2f} USD"] if self._usd() else []
        return ", ".join(parts) + self._left()

    def close(self) -> None:
        """Stop what turns."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def table(self, outcomes: Sequence[Outcome]) -> None:
        """What became of each op; also when quiet."""
        self.close()
        table = Table("op", "decision", "rounds", "tokens", "cost", "seconds", box=None, pad_edge=False)
        for one in outcomes:
            table.add_row(*(escape(cell) for cell in one.cells()))
        self._console.print(table)
        self._console.print(escape(fast(outcomes)), soft_wrap=True, highlight=False)
        for one in outcomes:
            if one.undone:
                self._console.print(
                    escape(printable(f"left undone: {one.op}: {one.reason}", 1000)), soft_wrap=True, highlight=False
                )

    def _show(self) -> None:
        if self._spinner is not None:
            self._spinner.update(escape(self.line()))

    def _left(self) -> str:
        """The time that the rest takes if it goes on like this."""
        now = self._done - self._before
        if not now or self._done == self._total:
            return ""
        left_s = (time.monotonic() - self._begun) / now * (self._total - self._done)
        return f", about {left_s / 60:.0f} min left"


class Showing(Silent):
    """The watcher that shows what one op is doing."""

    def __init__(self, progress: Progress, op: str) -> None:
        self._progress = progress
        self._op = op

    def run_started(self, run: Run, folder: Path, judging: Judging) -> None:
        """Its baseline is there."""
        self._progress.doing(self._op, "beginning")

    def asking(self, number: int, stage: str, round_: int) -> None:
        """The model has it."""
        self._progress.doing(self._op, _MODEL)

    def judging(self, number: int) -> None:
        """The judge has it, or is waited for."""
        self._progress.doing(self._op, _JUDGE)

    def measuring(self, text: str) -> None:
        """It is timed."""
        self._progress.doing(self._op, _MEASURE)
