"""One git command, as if nobody had configured git: the boundary at which its refusals become errors of ours.

Owns the environment of a command: none of the person's configuration, hooks, filters, identity or GIT_ variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import WorkspaceError
from orchestrator.text import printable

NAME, EMAIL = "orchestrator", "orchestrator@localhost"
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "i18n.commitEncoding": "utf-8",
}

_REMEDY = "if the repository is damaged, restore it from a copy or move it away"


def git(repository: Path, *args: str) -> bytes:
    """What one git command printed. The boundary at which git's refusals become errors of ours."""
    try:
        from git import Git, GitError  # not at import: it takes long, and fails where git is not installed
    except ImportError as error:
        raise WorkspaceError("git does not run here; install git and see that it is on PATH") from error
    runner = Git(repository)
    environment = _environment(repository)
    runner.update_environment(**environment)
    command = [*_without_strangers(environment), str(Git.GIT_PYTHON_GIT_EXECUTABLE), *args]
    try:
        out = runner.execute(command, stdout_as_string=False, strip_newline_in_stdout=False)
    except GitError as error:
        said = printable(str(getattr(error, "stderr", "")).strip() or str(error), 300)
        raise WorkspaceError(f"git {args[0]} failed in {repository}: {said}; {_REMEDY}") from error
    except OSError as error:
        raise WorkspaceError(f"git {args[0]} could not run in {repository}: {error}") from error
    if not isinstance(out, bytes):
        raise WorkspaceError(f"git {args[0]} answered with {type(out).__name__} where bytes were asked for")
    return out


def _environment(repository: Path) -> dict[str, str]:
    """Git as if nobody had configured it."""
    settings = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, (key, value) in enumerate(_SETTINGS.items()):
        settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    who = {"NAME": NAME, "EMAIL": EMAIL}
    settings |= {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    return settings | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_DIR": str(repository),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _without_strangers(environment: Mapping[str, str]) -> list[str]:
    """What to put before a command so that other git variables do not reach it: GitPython can add but not remove.

    A git hook that starts us sets GIT_INDEX_FILE, GIT_WORK_TREE and more; only where git's own parts lie is kept.
    """
    kept = {*environment, "GIT_EXEC_PATH"}
    strangers = [name for name in os.environ if name.startswith("GIT_") and name not in kept]
    return ["env", *(f"--unset={name}" for name in strangers)] if strangers else []
