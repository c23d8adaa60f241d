"""Is an op's own checker good enough? Asks the judge, and says it in words.

Owns the job folder of a check, how its result reads, what it comes to as an exit code, and that no run starts on an op
that fails it. What a decoy is, and what becomes of it, is the judge's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from orchestrator.config import JudgeSettings
from orchestrator.errors import UsageError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.ops.parts import VALUES
from orchestrator.records import DecoyResult, Fate, OpCheck, OpCheckJob
from orchestrator.text import printable
from orchestrator.tree import lay_out

_DETAIL = 800  # characters of what became of a decoy


async def check(op: Op, executor: Executor, *, quick: bool | None = None) -> OpCheck:
    """The fate of each of the op's decoys. Raises InfrastructureError when there can be no answer."""
    with tempfile.TemporaryDirectory(prefix="opcheck-") as place:
        folder = Path(place) / "op"
        own = {op.decoys.name: op.decoys.read_bytes()} if op.decoys.is_file() else {}
        lay_out({**op.workspace_files(), **own}, folder)
        return await executor.check_op(_job(op, folder, quick))


async def require(op: Op, executor: Executor, settings: JudgeSettings) -> str:
    """The score, in one line, before a run.

    Raises UsageError unless a person has approved the op and every decoy of it is rejected; with `weak_ops` one that is
    let through is said and borne.
    """
    if not op.spec.approved:
        written = f"{op.folder / 'op.yaml'}: approved is false, so no run starts on {op.name}"
        raise UsageError(f"{written}; read op.yaml and reference.py, mend them, then set approved: true")
    result = await check(op, executor, quick=settings.quick)
    if result.passed:
        return headline(result)
    comparable = all(one.fate is not Fate.BROKEN for one in result.decoys)
    if settings.weak_ops and comparable:
        return f"{headline(result)}; it runs all the same (judge.weak_ops)"
    raise UsageError(f"{headline(result)}; `python -m orchestrator ops check {op.name}` says what to do")


def _job(op: Op, folder: Path, quick: bool | None) -> OpCheckJob:
    spec = op.spec
    return OpCheckJob(
        folder=str(folder.resolve()),
        op=op.name,
        module=spec.kernel_name.removesuffix(".py"),
        function=spec.function,
        reference=spec.reference,
        inputs={name: one.shape for name, one in spec.inputs.items()},
        outputs={name: one.shape for name, one in spec.outputs.items()},
        output_dtypes={name: str(one.dtype_of or one.dtype) for name, one in spec.outputs.items()},
        integers=tuple(name for name, one in spec.inputs.items() if one.integer),
        strided=tuple(name for name, one in spec.inputs.items() if one.strided),
        in_place=spec.in_place,
        dtypes=spec.sweep.dtypes,
        parameters=spec.parameters,
        values=VALUES,
        equivalent=spec.equivalent_decoys,
        baselines={name: one.call for name, one in spec.bench.baselines.items() if not one.module},
        confined=not spec.approved,
        quick=quick,
    )


def lines(result: OpCheck) -> list[str]:
    """The result for a person: the score, each decoy with the case that rejected it, and what did not count."""
    width = max((len(one.name) for one in result.decoys), default=0)
    said = [headline(result)]
    said += [f"  {one.name:<{width}}  {_how(one)}" for one in result.counted]
    if same := [one.name for one in result.decoys if one.fate is Fate.EQUIVALENT]:
        said.append(f"  not counted, equal to the reference on every case and on further ones: {', '.join(same)}")
    said += [
        f"  not counted, {one.name}: {one.fate}: {one.detail}"
        for one in result.decoys
        if one.fate in (Fate.DECLARED, Fate.UNMADE)
    ]
    return said


def exit_code(results: Sequence[OpCheck]) -> int:
    """0 when every op's checker rejects every decoy."""
    return int(not all(result.passed for result in results))


def headline(result: OpCheck) -> str:
    """The score, and the decoys for which the op is refused."""
    score = f"{result.op}: {result.rejected} of {len(result.counted)} decoys rejected in {result.seconds:.1f} s"
    failed = [one.name for one in result.counted if one.fate is not Fate.REJECTED]
    if len(failed) == 1 == len(result.decoys):
        return f"{result.op}: refused: {_how(result.counted[0])}"
    return f"{score} ({result.device})" + (f"; refused for {', '.join(failed)}" if failed else "")


def _how(one: DecoyResult) -> str:
    if one.fate is Fate.REJECTED:
        return f"{one.status} by {one.case}: {printable(one.detail, _DETAIL)}"
    where = f" on {one.case}" if one.case else ""
    return f"{str(one.fate).upper()}{where}: {printable(one.detail, _DETAIL)} [{one.about}]"
