"""Carrying a command out: to its end or to Ctrl-C, with a judge that is ended whatever happens."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.executors import Executor
    from orchestrator.terminal import Terminal

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


def output_kept(wanted: bool) -> AbstractContextManager[object]:
    """While it lasts, whatever a library prints goes to stderr: Ray tells of a lost node on the standard output."""
    return redirect_stdout(sys.stderr) if wanted else nullcontext()


def through(work: Coroutine[Any, Any, T], display: Closes, interrupted: str | Callable[[], str] = "interrupted") -> T:
    """What the work comes to.

    Raises:
        typer.Exit: Ctrl-C; `interrupted` has been said.
    """
    return carried(lambda: asyncio.run(work), display, interrupted)


def carried(call: Callable[[], T], display: Closes, interrupted: str | Callable[[], str] = "interrupted") -> T:
    """What the call comes to.

    Raises:
        typer.Exit: Ctrl-C; `interrupted` has been said.
    """
    try:
        return call()
    except KeyboardInterrupt:
        display.close()
        typer.echo(interrupted() if callable(interrupted) else interrupted, err=True)
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        display.close()


def judge(settings: Settings, log: Path) -> AbstractAsyncContextManager[Executor]:
    """One judge, of this machine or of a cluster; it starts when it is first asked."""
    from orchestrator.executors import pool

    return pool.one(settings.judge, log)
