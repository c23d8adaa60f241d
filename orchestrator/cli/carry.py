"""Carrying a command out: to its end or to Ctrl-C, with a judge that is ended whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.executors.local import LocalExecutor
    from orchestrator.terminal import Terminal
    from orchestrator.watch import Watch

T = TypeVar("T")
_INTERRUPTED = 130  # as a shell has it: 128 + SIGINT


class Closes(Protocol):
    """A display that must let go of the terminal before anything else is printed."""

    def close(self) -> None: ...


def terminal(*, to_stderr: bool) -> Terminal:
    """A terminal; with --json its lines go to stderr."""
    from rich.console import Console

    from orchestrator.terminal import Terminal

    return Terminal(Console(stderr=to_stderr))


def through(work: Coroutine[Any, Any, T], display: Closes, interrupted: str = "interrupted") -> T:
    """What the work comes to.

    Raises:
        typer.Exit: Ctrl-C; `interrupted` has been said.
    """
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        display.close()
        typer.echo(interrupted, err=True)
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        display.close()


@asynccontextmanager
async def judge(settings: Settings, log: Path) -> AsyncIterator[LocalExecutor]:
    """A judge on this machine; it starts when it is first asked."""
    from orchestrator.executors.local import LocalExecutor

    executor = LocalExecutor(settings.judge.device, log)
    try:
        yield executor
    finally:
        await executor.close()


@contextmanager
def entered(workspaces: Path, terminal: Terminal, settings: Settings | None = None) -> Iterator[Watch]:
    """The terminal, and beside it what enters the run into the ledger and, where settings say so, into MLflow."""
    from orchestrator import tracking
    from orchestrator.config import MlflowSettings
    from orchestrator.ledger import Entering, Ledger
    from orchestrator.watch import Several

    index = Ledger(workspaces)
    try:
        with tracking.following(settings.mlflow if settings else MlflowSettings(), terminal.say) as more:
            yield Several(Entering(index), terminal, *more)
    finally:
        index.close()
