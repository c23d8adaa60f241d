"""Kernels compiled for real targets, without a GPU and without being run.

`interpreter` writes down each kind of launch as a Specialization; `compile_all` compiles it. Where Triton
interprets nothing can be compiled, because the language's own functions were made for the interpreter, so that is for
a process of its own: forked before triton was imported, TRITON_INTERPRET not set, and confined as a candidate is,
because it imports the kernel file. What it says may convict a kernel, never acquit it. `prepare` is for the warden of
such processes, `serve` is what each of them runs, the Cache is the judge's. Importing this imports neither torch nor
triton.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.judge import channel
from orchestrator.judge.ahead import forks
from orchestrator.judge.ahead.cache import Cache
from orchestrator.judge.ahead.records import (
    CompileResult,
    Specialization,
    result_from_json,
    specialization_from_json,
)

__all__ = [
    "SHARED_LIMIT_BYTES",
    "TARGETS",
    "TOO_LATE",
    "Work",
    "Cache",
    "CompileResult",
    "Specialization",
    "compile_all",
    "prepare",
    "result_from_json",
    "serve",
    "specialization_from_json",
]

Work = tuple[Specialization, str]  # and the target

TARGETS = ("sm_80", "sm_90", "gfx942")
TOO_LATE = "compiling did not end in time"
SHARED_LIMIT_BYTES = {"sm_80": 166_912, "sm_90": 232_448, "gfx942": 65_536}  # what one program may have there


def compile_all(
    kernel_file: Path, jobs: Sequence[Work], workers: int | None = None, limit_s: float = 60.0
) -> list[CompileResult]:
    """Compile each specialization for the target beside it; the results in that order. Runs the file as an import does.

    A fork compiles one specialization for all its targets, one for each core at a time unless `workers` says otherwise.
    What did not compile so is compiled once more in a fork of its own, which tells whose the compiler's words and a
    crash are. What is not done after `limit_s` seconds is ended, and is a limit.
    """
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise RuntimeError("nothing can be compiled in a process in which Triton interprets")
    from orchestrator.judge.ahead import compiling

    try:
        functions = compiling.load(kernel_file)
    except Exception as error:  # noqa: BLE001 - whatever the file raises without the interpreter is its fault
        text = f"{kernel_file.name} cannot be imported where Triton compiles: {type(error).__name__}: {error}"
        return [CompileResult(job.kernel, target, ok=False, error=text[:4000]) for job, target in jobs]
    begun = time.monotonic()
    together: dict[str, list[int]] = {}
    for number, (specialization, _) in enumerate(jobs):
        together.setdefault(specialization.to_json(), []).append(number)
    groups = list(together.values())
    calls = [partial(_as_text, functions, [jobs[number] for number in group]) for group in groups]
    results: dict[int, CompileResult] = {}
    for group, outcome in zip(groups, forks.run(calls, workers or os.cpu_count() or 1, limit_s), strict=True):
        found = _results(outcome, len(group))
        if not any(result.error for result in found):
            results |= dict(zip(group, found, strict=False))
        elif len(group) == 1:
            results[group[0]] = _alone(jobs[group[0]], outcome)
    again = [number for number in range(len(jobs)) if number not in results]
    calls = [partial(_as_text, functions, [jobs[number]]) for number in again]
    left_s = max(0.0, limit_s - (time.monotonic() - begun))
    for number, outcome in zip(again, forks.run(calls, workers or os.cpu_count() or 1, left_s), strict=True):
        results[number] = _alone(jobs[number], outcome)
    return [results[number] for number in range(len(jobs))]


def prepare() -> None:
    """Import triton and what compiles with it. For the fork that is to become the warden of compiling processes, before
    it serves: a confined process can read none of our files."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise RuntimeError("nothing can be compiled in a process in which Triton interprets")
    from orchestrator.judge.ahead import compiling

    assert compiling


def serve(sock: socket.socket, config: dict[str, Any]) -> None:
    """Answer one request of the judge: `work`, each a specialization as text with a target; `config` names the file."""
    message: dict[str, Any] = channel.receive(sock)
    work = [(specialization_from_json(text), target) for text, target in message["work"]]
    results = compile_all(Path(config["kernel"]), work, message["workers"], message["limit_s"])
    channel.send(sock, {"results": [result.to_json() for result in results]})


def _as_text(functions: Any, jobs: Sequence[Work]) -> str:
    from orchestrator.judge.ahead import compiling

    return "\n".join(compiling.compile_one(functions, *job).to_json() for job in jobs)


def _results(outcome: forks.Outcome, expected: int) -> list[CompileResult]:
    """What a fork said of all it was given; nothing where it did not end well."""
    texts = [] if outcome.text is None else outcome.text.splitlines()
    return [result_from_json(text) for text in texts] if len(texts) == expected else []


def _alone(job: Work, outcome: forks.Outcome) -> CompileResult:
    specialization, target = job
    failed = CompileResult(specialization.kernel, target, ok=False, seconds=round(outcome.seconds, 4))
    if outcome.timed_out:
        return replace(failed, limit=TOO_LATE)
    if not (found := _results(outcome, 1)):
        how = f"signal {outcome.signal}" if outcome.signal else "an exit"
        return replace(failed, error=f"the compiler ended its process by {how}\n{outcome.output}"[-4000:])
    if found[0].error and outcome.output:  # what MLIR and LLVM say goes to the standard error
        return replace(found[0], error=f"{found[0].error}\n{outcome.output}"[:6000])
    return found[0]
