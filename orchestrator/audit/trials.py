"""Claims put to the judge: the kernel at the claimed input, and what it compiled to.

Owns which claims can be tested and what a verdict says of one. An input is put only where the op's own sweep could
have drawn it: beyond that an honest kernel may differ from the reference too. A claim is confirmed by what happens at
its input or by a fact of what was compiled; the reason that a model gives stays the model's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import ValidationError

from orchestrator.attempt import run_kernel
from orchestrator.audit import compiled
from orchestrator.audit.claims import Claim, ClaimedCase, Outcome, Tested
from orchestrator.config import JudgeSettings
from orchestrator.errors import InfrastructureError
from orchestrator.executors import Executor
from orchestrator.ops import Op
from orchestrator.ops.spec import OpSpec
from orchestrator.records import CaseResult, Compiled, Parameter, Report, Status
from orchestrator.text import printable
from orchestrator.verifying import rendering
from orchestrator.workspace import attempt_folder

_LARGEST = 1 << 20  # product of the dims where Triton interprets; a GPU takes what its memory holds


class Untestable(Exception):
    """Why an op cannot be asked about a claimed case."""


async def tested(
    claim: Claim, kernel: bytes, op: Op, executor: Executor, settings: JudgeSettings, known: Sequence[Compiled]
) -> Tested:
    """What becomes of the claim. `known` is what the op's own cases compiled to, where they were."""
    if claim.fact is not None:
        return _by_fact(claim, kernel, op.spec.kernel_name, known)
    if claim.case is None:
        return Tested(claim, Outcome.NOT_TESTED, "it names no input and no fact to test it by")
    try:
        narrowed = narrow(op, claim.case, interpreted=(await executor.start()).interpreted)
        with attempt_folder({}) as folder:
            whole = settings.model_copy(update={"quick": False})  # however large the case is
            report = await run_kernel(kernel, narrowed, rendering(narrowed), executor, whole, folder)
    except Untestable as why:
        return Tested(claim, Outcome.NOT_TESTED, str(why))
    except InfrastructureError as error:
        return Tested(claim, Outcome.NOT_TESTED, printable(str(error), 300))
    return _by_verdict(claim, claim.case, report)


def narrow(op: Op, case: ClaimedCase, *, interpreted: bool) -> Op:
    """The op with that case for its whole sweep. Raises Untestable."""
    spec = op.spec
    _within(spec, case)
    if interpreted and math.prod(case.dims.values()) > _LARGEST:
        raise Untestable(f"more than {_LARGEST} elements are too many for Triton's interpreter; it needs a GPU")
    shape = tuple(case.dims[dim] for dim in spec.dims)
    telling = None if case.values == "normal" else {"shape": shape, "values": (case.values,)}
    changed = {
        "parameters": spec.parameters | case.parameters,
        "entry": spec.entry,
        "sweep": {
            **{"shapes": (shape,), "dtypes": (case.dtype,), "scales": (case.scale,), "telling": telling},
            **{"quick": spec.sweep.quick, "holdout": {}},
        },
    }
    try:
        return Op(op.folder, OpSpec.model_validate(spec.model_dump() | changed), op.reference)
    except ValidationError as error:
        first = error.errors()[0]
        raise Untestable(printable(f"{op.name} takes no such case: {first['msg']}", 300)) from None


def _within(spec: OpSpec, case: ClaimedCase) -> None:
    """Raises Untestable unless the op's sweep has such values."""
    sweep, told = spec.sweep, spec.sweep.telling
    if set(case.dims) != set(spec.dims):
        raise Untestable(f"{spec.name} has the dims {', '.join(spec.dims)}")
    if case.dtype not in sweep.dtypes:
        raise Untestable(f"{spec.name} is asked for {', '.join(sweep.dtypes)} only")
    kinds = ("normal", *(told.values if told else ()))
    if case.values not in kinds:
        raise Untestable(f"{spec.name} is asked for values of these kinds only: {', '.join(kinds)}")
    if not min(sweep.scales) <= case.scale <= max(sweep.scales):
        raise Untestable(f"{spec.name} is asked for scales from {min(sweep.scales):g} to {max(sweep.scales):g}")
    for number, dim in enumerate(spec.dims):
        listed = [shape[number] for shape in (*sweep.shapes, *sweep.holdout.always)]
        known = [*listed, *sweep.holdout.ranges.get(dim, ())[:2]]
        if not min(known) <= case.dims[dim] <= max(known):
            raise Untestable(f"{spec.name} is asked for {dim} from {min(known)} to {max(known)}")
    for name, value in case.parameters.items():
        if name not in spec.parameters:
            raise Untestable(f"{spec.name} has no parameter {printable(name)}")
        values = [spec.parameters[name], *sweep.holdout.parameters.get(name, ())]
        values += [told.parameters[name]] if told and name in told.parameters else []
        if not _among(value, values):
            raise Untestable(f"{spec.name} is asked for {name} of {', '.join(map(str, values))}")


def _among(value: Parameter, values: Sequence[Parameter]) -> bool:
    """One of them, or a number between two of them."""
    numbers = [one for one in values if isinstance(one, float) and not isinstance(one, bool)]
    between = bool(numbers) and isinstance(value, int | float) and min(numbers) <= value <= max(numbers)
    return value in values or between


def _by_verdict(claim: Claim, case: ClaimedCase, report: Report) -> Tested:
    if report.status is Status.INFRASTRUCTURE:
        return Tested(claim, Outcome.NOT_TESTED, printable(report.message, 300))
    mine = [one for one in report.cases if one.values == case.values]
    if failed := next((one for one in mine if not one.passed), None):
        return Tested(claim, Outcome.CONFIRMED, f"{failed.name}: {failed.status}: {_seen(failed)}")
    if not mine:
        return Tested(claim, Outcome.NOT_TESTED, printable(f"the file does not run: {report.message}", 300))
    if report.passed or any(not one.passed for one in report.cases):
        return Tested(claim, Outcome.REFUTED, f"{mine[0].name} passes: {_seen(mine[0])}")
    return Tested(claim, Outcome.CONFIRMED, printable(f"{report.status}: {report.message}", 300))


def _seen(case: CaseResult) -> str:
    if case.detail:
        return printable(case.detail.split("\n", 1)[0], 200)
    if case.max_abs is None:
        return ""
    where = f", {case.wrong_in}" if case.wrong_in else ""
    return f"max_abs {case.max_abs:.3g}, {case.wrong} of {case.elements} elements wrong{where}"


def _by_fact(claim: Claim, kernel: bytes, name: str, known: Sequence[Compiled]) -> Tested:
    if not known:
        return Tested(claim, Outcome.NOT_TESTED, "nothing was compiled here")
    rule = f"compiled-{claim.fact}"
    found = [one for one in compiled.findings(known, kernel, name) if one.rule == rule]
    if claim.fact == "uncoalesced":
        found = [one for one in found if one.line == claim.line]
    if found:
        return Tested(claim, Outcome.CONFIRMED, found[0].message)
    return Tested(claim, Outcome.REFUTED, f"none of {len(known)} compiled specializations shows it")
