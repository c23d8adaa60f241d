"""A passed kernel, from its bytes to a Measured: the job's folder, the judge's answer, what of it is kept.

Owns what a measurement is asked with and which files it leaves. Who is faster is `weigh`'s business, what becomes of
it `decide`'s.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.attempt import Export, require_sandbox
from orchestrator.config import Settings
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.measured import Baseline, Measured, MeasureJob
from orchestrator.ops import Op
from orchestrator.records import Judging, from_json, to_json
from orchestrator.tree import lay_out, os_errors, write_whole

MEASURED = "measured.json"  # last to be written: where it is, the measurement is whole
_GENERATED = "inductor"
_CHAMPION, _BEST = "champion", "best"  # folders of their kernels, in the job's folder
_NO_GPU = "there is no GPU here, and times in Triton's interpreter mean nothing"
NOTHING_TO_MEASURE_ON = (
    "there is nothing to measure on: no GPU is visible here, and times in Triton's interpreter mean nothing; "
    "run this on a machine with a GPU"
)


@dataclass(frozen=True)
class Rivals:
    """What a kernel is measured against beyond its op's baselines, and where main stood when that was looked up."""

    champion: bytes | None = None
    main: str = ""  # commit
    best: bytes | None = None  # the run's best kernel so far, where the candidate is a later one


def unmeasurable(op: Op, judging: Judging) -> str:
    """Why the op's kernels are not timed there; "" where they can be."""
    return _NO_GPU if judging.interpreted else _overwritten(op)


def _overwritten(op: Op) -> str:
    """What a contender overwrites the next replay would begin with, and the judge knows only values that move on."""
    names = ", ".join(op.spec.in_place)
    return (
        f"kernels of {op.name} overwrite {names}, and only what leaves its inputs alone can be timed" if names else ""
    )


async def started(executor: Executor, settings: Settings, op: Op) -> Judging:
    """Where the judge would measure. Raises UsageError where that is nowhere or the op cannot be timed, JudgeError
    where the sandbox that is required lacks a piece.
    """
    if why := _overwritten(op):
        raise UsageError(why)
    judging = await executor.start()
    if judging.interpreted:
        raise UsageError(NOTHING_TO_MEASURE_ON)
    if settings.judge.require_sandbox:
        require_sandbox(judging)
    return judging


async def measure_kernel(
    kernel: bytes,
    rivals: Rivals,
    op: Op,
    export: Export,
    executor: Executor,
    settings: Settings,
    folder: Path,
    tell: Callable[[str], None],
    dtypes: tuple[str, ...] = (),
) -> Measured:
    """Time a kernel that has passed: all of the op's shapes, or with some dtypes only and without its curve.

    `folder` is where its job folder is made, and where the evidence is kept; what a killed run has measured there is
    not measured again.
    """
    if (folder / MEASURED).is_file():
        return kept(folder)
    job_folder = folder / "job"
    export(job_folder, op.spec.kernel_name, kernel)
    for name, rival in ((_CHAMPION, rivals.champion), (_BEST, rivals.best)):
        if rival is not None:
            lay_out({op.spec.kernel_name: rival}, job_folder / name)
    job = job_of(op, settings, job_folder, rivals)
    if dtypes:
        job = replace(job, dtypes=dtypes, curve=())
    measured = await executor.measure(job, tell)
    keep(measured, folder)
    return measured


def keep(measured: Measured, folder: Path) -> None:
    """measured.json, and the kernels that torch.compile generated in inductor/."""
    with os_errors(f"write into {folder}"):
        for name, text in measured.generated.items():
            (folder / _GENERATED).mkdir(exist_ok=True)
            (folder / _GENERATED / name).write_text(text, encoding="utf-8")
    write_whole(folder / MEASURED, to_json(replace(measured, generated={})))


def kept(folder: Path) -> Measured:
    """What `keep` left there."""
    with os_errors(f"read {folder}"):
        generated = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / _GENERATED).glob("*"))}
        return replace(from_json(Measured, (folder / MEASURED).read_bytes()), generated=generated)


def job_of(op: Op, settings: Settings, folder: Path, rivals: Rivals) -> MeasureJob:
    """What the judge is asked: all shapes and dtypes of the op, all its baselines."""
    spec = op.spec
    return MeasureJob(
        id=folder.parent.name,
        nonce=secrets.token_hex(16),
        folder=str(folder.resolve()),
        kernel=spec.kernel_name,
        function=spec.function,
        reference=spec.reference,
        parameters=spec.parameters,
        dims=spec.dims,
        shapes=spec.bench.shapes,
        dtypes=spec.bench.dtypes,
        bytes=spec.bench.bytes,
        flops=spec.bench.flops,
        flops_at_least=spec.bench.flops_of == "least",
        baselines=tuple(Baseline(name, one.call, one.module) for name, one in spec.bench.baselines.items()),
        curve=spec.bench.curve.shapes if spec.bench.curve else (),
        curve_dtype=spec.bench.curve.dtype if spec.bench.curve else "",
        champion="" if rivals.champion is None else f"{_CHAMPION}/{spec.kernel_name}",
        best="" if rivals.best is None else f"{_BEST}/{spec.kernel_name}",
        without=settings.measure.without,
        keep_compiled=settings.measure.keep_compiled,
        rounds=settings.measure.rounds,
        sittings=settings.measure.sittings,
        total_s=settings.measure.total_s,
        require_idle=settings.measure.require_idle,
        seed=settings.judge.seed,
        limits=settings.judge.limits,
    )
