"""Where the shipped files are: prompts and configs lie beside the package in a checkout, inside it in a wheel.

Also the one way in which templates are rendered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orchestrator import text

_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The shipped folder `name` ("prompts" or "configs")."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def templates() -> Path:
    """The folder of templates of a workspace's files and of a decision."""
    return _PACKAGE / "templates"


def environment(folder: Path, *, html: bool = False, **filters: Callable[..., object]) -> Environment:
    """How all our templates are rendered: an undefined name is an error, and blocks leave no blank lines.

    Text from outside goes through one of the filters plain, code and cell, further ones by name; in HTML everything is
    escaped. What was asked for before is the same one, with its templates compiled.
    """
    return _environment(folder, html, tuple(filters.items()))


@functools.cache
def _environment(folder: Path, html: bool, filters: tuple[tuple[str, Callable[..., object]], ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(plain=text.printable, code=text.code, cell=text.cell)
    environment.filters.update(filters)
    return environment
