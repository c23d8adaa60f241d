"""The corpora through the real judge: file by file, by the whole and by the run-time layer alone.

Owns the limits that keep a hang, a bomb or a flood to seconds, and the look at the job's folder afterwards. A warm
judge serves many of them, so a cheat that harms it harms the verdicts that follow, which would show.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import guard
from orchestrator.attempt import judge_kernel, require_sandbox, run_kernel
from orchestrator.config import JudgeSettings
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.records import Judging, Limits, Report, Status
from orchestrator.redteam.entries import Entry
from orchestrator.redteam.score import RUNTIME, WHOLE, Result, Score, Seen, line, result
from orchestrator.text import printable
from orchestrator.verifying import rendering
from orchestrator.workspace import attempt_folder

_CHOICES = {WHOLE: (WHOLE,), RUNTIME: (RUNTIME,), "both": (WHOLE, RUNTIME)}


def layers(choice: str) -> tuple[str, ...]:
    """The layers of `--layer`; raises UsageError."""
    if choice not in _CHOICES:
        raise UsageError(f"--layer {printable(choice)}: give one of {', '.join(_CHOICES)}")
    return _CHOICES[choice]


async def run(
    entries: Sequence[Entry],
    by: Sequence[str],
    op: Op,
    executor: Executor,
    jobs: int,
    settings: JudgeSettings,
    say: Callable[[str], None],
) -> Score:
    """Every file by every layer, so many at once; a line a file is said as it ends."""
    judging = await executor.start()
    if settings.require_sandbox:
        require_sandbox(judging)
    versions = ", ".join(f"{name} {version}" for name, version in judging.versions.items())
    say(f"{len(entries)} files, judged on {judging.device}; {versions}")
    say("".join(f"confinement without: {piece.name} ({piece.detail})\n" for piece in judging.sandbox if not piece.held))
    waiting = iter(sorted(entries, key=lambda entry: not entry.honest))  # these take longest; begun last, they end last
    results: dict[str, list[Result]] = {}

    async def work() -> None:
        for entry in waiting:
            seen = await _by_layers(entry, by, op, executor, _settings_for(entry, settings, judging))
            of_file = results[entry.name] = [result(entry, one, judging) for one in seen]
            seconds = sum(one.seconds for one in of_file)
            say(f"{len(results):>3}/{len(entries)} {entry.name}: {line(of_file)} ({seconds:.1f} s)")

    await asyncio.gather(*(work() for _ in range(jobs)))
    return Score(judging, tuple(one for entry in entries for one in results[entry.name]))


def _settings_for(entry: Entry, settings: JudgeSettings, judging: Judging) -> JudgeSettings:
    """A cheat is caught by the first case that fails, and what it may take is little."""
    if entry.honest:
        return settings
    return settings.model_copy(update={"limits": _tight(settings.limits, judging), "first_failure": True})


def _tight(limits: Limits, judging: Judging) -> Limits:
    """Of a cheat: what hangs costs seconds, and what grows stays small."""
    here = judging.interpreted
    return replace(
        limits,
        import_s=min(limits.import_s, 10 if here else 30),
        compile_s=min(limits.compile_s, 4 if here else 30),
        call_s=min(limits.call_s, 6),
        total_s=min(limits.total_s, 90),
        memory_mb=min(limits.memory_mb, 1536 if here else 6144),
        processes=min(limits.processes, 16),
        scratch_mb=min(limits.scratch_mb, 64),
    )


async def _by_layers(
    entry: Entry, by: Sequence[str], op: Op, executor: Executor, settings: JudgeSettings
) -> list[Seen]:
    """One verdict serves both layers where the policy accepts: the whole is then the run-time layer."""
    seen = [await _seen(entry, by[0], op, executor, settings)]
    for layer in by[1:]:
        if seen[0].ran and not entry.tampers:
            seen.append(replace(seen[0], layer=layer, seconds=0))
        else:
            seen.append(await _seen(entry, layer, op, executor, settings))
    return seen


async def _seen(entry: Entry, layer: str, op: Op, executor: Executor, settings: JudgeSettings) -> Seen:
    judged_by, begun = judge_kernel if layer == WHOLE else run_kernel, time.perf_counter()
    with attempt_folder({}) as folder:
        kernel = entry.data() if layer == WHOLE else entry.armed((folder / "job").resolve())
        try:
            report = await judged_by(kernel, op, rendering(op), executor, settings, folder)
        except InfrastructureError as error:
            report = Report(Status.INFRASTRUCTURE, printable(str(error), 400))
        touched = _touched(folder / "job", kernel, op)
    seconds = round(time.perf_counter() - begun, 2)
    needs_gpu = report.status is Status.INFRASTRUCTURE and bool(report.cases)  # else it is a failure of ours
    return Seen(layer, report.status, report.message, bool(report.nonce), touched, needs_gpu, seconds)


def _touched(job: Path, kernel: bytes, op: Op) -> tuple[str, ...]:
    """Files of the job's folder that are not what was laid there."""
    if not job.is_dir():
        return ()  # the policy refused it: nothing was run
    name = op.spec.kernel_name
    others = tuple(finding.where for finding in guard.touched(op.workspace_files(), job, name))
    own = job / name
    return others if own.is_file() and own.read_bytes() == kernel else (*others, name)
