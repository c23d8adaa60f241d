"""Examples from a script of the person's: the command is run, and what the target is called with is written down.

Owns the command's process: as the person would run it, without keys in its environment. What looks at the calls is
`judge/convert/tracer`, in the script's own Python; nothing of the script or of the target changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from orchestrator.convert.examples import Examples, distinct, facts_of
from orchestrator.convert.extract import Target, cut
from orchestrator.convert.prober import environment
from orchestrator.errors import UsageError
from orchestrator.probed import Seen
from orchestrator.text import printable

_TRACER = Path(__file__).resolve().parents[1] / "judge" / "convert" / "tracer.py"
LIMIT_S = 600.0
_MOST = 4  # calls of different shapes that are taken


def traced(command: str, target: Target, limit_s: float = LIMIT_S) -> Examples:
    """The calls that running the command makes. Raises UsageError where it makes none that can be used."""
    calls = _calls(command, target, limit_s)
    if not calls:
        raise UsageError(
            f"--trace {command!r}: it ran, and never called {target.name} of {target.path}; trace a script that does"
        )
    for call in calls:
        if call["odd"]:
            named = ", ".join(f"{name} ({kind})" for name, kind in call["odd"].items())
            raise UsageError(
                f"--trace: {target.name} is called with {named}: only tensors, numbers, text and None can be passed to "
                f"a kernel; convert a function that takes its tensors one by one"
            )
    facts = [facts_of({name: Seen(**one) for name, one in call["tensors"].items()}, call["others"]) for call in calls]
    return Examples(distinct(facts, _MOST), _init(calls[0]["init"]))


def _init(init: dict[str, Any] | None) -> dict[str, Any] | None:
    """The constructor's arguments; where objects are among them, the file's get_init_inputs() must give them."""
    return None if init is None or init["odd"] else dict(init["literal"])


def _calls(command: str, target: Target, limit_s: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="trace-") as place:
        out = Path(place) / "calls.json"
        (Path(place) / "sitecustomize.py").write_bytes(_TRACER.read_bytes())
        asked = {"path": str(target.path), "first": target.first, "call": _qualified(target), "out": str(out)}
        path = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH"))))
        _run(command, environment() | {"ORCHESTRATOR_TRACE": json.dumps(asked), "PYTHONPATH": path}, limit_s)
        if not out.is_file():
            raise UsageError(f"--trace {command!r} started no Python that could be looked into: give python run.py")
        return list(json.loads(out.read_text())["calls"])


def _run(command: str, environ: dict[str, str], limit_s: float) -> None:
    try:
        code, errors = _ended(shlex.split(command), environ, limit_s)
    except (OSError, IndexError, ValueError) as error:
        raise UsageError(f"--trace {command!r} cannot be run: {error}") from error
    except subprocess.TimeoutExpired:
        raise UsageError(f"--trace {command!r} took more than {limit_s:g} s; trace a shorter run") from None
    if code:
        last = errors.decode(errors="replace").strip().split("\n")[-1] or "without a word"
        raise UsageError(f"--trace {command!r} ended with exit code {code}: {printable(last, 300)}")


def _ended(words: list[str], environ: dict[str, str], limit_s: float) -> tuple[int, bytes]:
    """The command's exit code and what it said on stderr. Where it takes too long, or the person ends this, all that it
    started ends with it.
    """
    output = subprocess.PIPE
    with subprocess.Popen(words, env=environ, stdout=output, stderr=output, start_new_session=True) as process:
        try:
            _, errors = process.communicate(timeout=limit_s)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, errors


def _qualified(target: Target) -> str:
    """The name that Python gives the function: a class is called by its forward."""
    if target.method or not cut(target).is_class:
        return target.name
    return f"{target.name}.forward"
