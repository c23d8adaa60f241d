"""The command line: parse, load, call, show, exit code. A command is a module; what is heavy is imported in use.

Exit codes: 0 accepted (or, where nothing can be measured, correct), 1 not accepted, 2 usage or configuration, 3 our
machinery, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from orchestrator.cli import (
    audit,
    bench,
    convert,
    docs,
    doctor,
    export,
    ledger,
    measure,
    nightly,
    ops,
    output,
    redteam,
    replay,
    report,
    run,
    schedule,
    verify,
)
from orchestrator.errors import InfrastructureError, OrchestratorError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    subcommand_metavar="COMMAND [ARGS]...",  # the default differs between versions
    context_settings={"help_option_names": ["-h", "--help"]},
)
# In the order in which --help lists them.
_COMMANDS = (
    *(run, convert, verify, redteam, bench, measure, export, report, replay, audit, docs),
    *(nightly, schedule, doctor, ledger, ops),
)
for command in _COMMANDS:
    command.register(app)


def main() -> None:
    """The entry point: an error of ours is one line and its exit code; only a bug shows a traceback."""
    with output.lasting() as streams:
        code = _ended()
        if streams is not None and streams.lost is not None:
            typer.echo(f"error: standard output cannot be written: {streams.lost}", err=True)
            code = InfrastructureError.exit_code
    sys.exit(code)


def _ended() -> int | str | None:
    """What the command comes to."""
    try:
        app()
    except SystemExit as ended:
        return ended.code
    except OrchestratorError as error:
        typer.echo(f"error: {error}", err=True)
        return error.exit_code
    return None
