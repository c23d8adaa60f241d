"""YAML that a person wrote, read and held to a form; what is wrong is said in one line, with the file and the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import UsageError

T = TypeVar("T")


def read(path: Path, called: str) -> Any:
    """What the file holds. Raises UsageError, in which it is `called` as the person knows it."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{called} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{called} is not YAML: {' '.join(str(error).split())}") from error


def checked(form: TypeAdapter[T], content: Any, called: str) -> T:
    """The content in its form. Raises UsageError with the first thing that is wrong."""
    try:
        return form.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{called} is wrong at {place(first['loc']) or 'its top'}: {first['msg']}") from error


def place(loc: tuple[int | str, ...]) -> str:
    """Where in a document, its keys with dots between them; "" for its top."""
    return ".".join(map(str, loc))
