"""`docs`: the documentation cache made anew, or one name of the installed Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options

if TYPE_CHECKING:
    from orchestrator.docs.guide import Guide


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("docs")(docs)


def docs(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]", help="Names such as tl.dot.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no network.")] = False,
    config: options.Config = None,
    override: options.Override = None,
) -> None:
    """What the installed Triton has: make the documentation cache, or print names with what is near to missing ones.

    Exit code 1 when a name does not exist.
    """
    from orchestrator.docs import cache

    settings = options.settings(config, override, {}).docs
    if names:
        guide = cache.installed()
        found = [_show(guide, name) for name in names]
        raise typer.Exit(int(not all(found)))
    _, lines = cache.make(settings.folder, None if offline else settings.site)
    typer.echo("\n".join(lines))


def _show(guide: Guide, name: str) -> bool:
    """Print the entry, or what may have been meant; whether it exists."""
    from orchestrator.text import printable

    entry = guide.find(name)
    if entry is not None:
        typer.echo("\n".join(filter(None, [entry.signature, entry.text])) + "\n")
        return True
    typer.echo(f"Triton {guide.version} has no {printable(name)}.")
    for near in guide.near(name):
        typer.echo(f"  near to it: {near.signature}{f': {near.about}' if near.about else ''}")
    return False
