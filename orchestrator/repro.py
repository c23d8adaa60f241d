"""A failing case as a script of its own: the kernel, the reference, the case and its seed, in one file.

Owns which case is shown and what goes into the file; how it runs is templates/repro.py.j2. Needs a report of the judge:
what guard, policy or signature refused never ran, so there is nothing to run again.
"""

from __future__ import annotations

import ast
import math

from orchestrator import resources
from orchestrator.ops import Op
from orchestrator.ops.spec import OpSpec
from orchestrator.records import CaseResult, Report, Status
from orchestrator.text import printable

_LINE = 200  # characters of a line that the candidate had a hand in
_LINES = 6
_AT_MOST_S = 300  # for a call that is not expected to hang; compiling happens within it
_ENDS = (Status.CRASHED, Status.TIMEOUT)
# What one call, watched by nobody, is sure to show. Of WRONG_VALUES, see `_one_call_shows_it`.
_SHOWN = (
    *_ENDS,
    Status.COMPILE_ERROR,
    Status.RUNTIME_ERROR,
    Status.WRONG_SHAPE,
    Status.WRONG_DTYPE,
    Status.INPUT_MUTATED,
)


def script(op: Op, kernel: bytes, report: Report) -> str | None:
    """The script, or None where the report is no failure that was run."""
    if report.passed or report.status is Status.INFRASTRUCTURE or not report.nonce:
        return None
    failed = smallest(report)
    files = {name: data.decode() for name, data in op.workspace_files().items()}
    environment = resources.environment(resources.templates(), python=repr, literal=_literal)
    return environment.get_template("repro.py.j2").render(
        function=op.spec.function,
        reference_function=op.spec.reference,
        in_place=op.spec.in_place,
        module=op.spec.kernel_name.removesuffix(".py"),
        kernel_file=op.spec.kernel_name,
        kernel=kernel.decode("utf-8", "replace"),
        reference=files["ref.py"],
        test=files["test_correctness.py"],
        case=_case(op.spec) if failed is None else _as_given(failed),
        seed=(report.seed or 0) if failed is None else failed.seed,
        status=str(report.status),
        judged=_judged(report, failed),
        judged_on=_where(report),
        interpreted=report.interpreted,
        ends_itself=report.status in _ENDS,
        one_call_shows_it=_one_call_shows_it(report, failed),
        limit_s=math.ceil(failed.seconds) + 10 if failed and failed.status is Status.TIMEOUT else _AT_MOST_S,
    )


def smallest(report: Report) -> CaseResult | None:
    """The smallest case that failed in the way that heads the report. None where none did: the import failed."""
    failed = [case for case in report.cases if case.status is report.status]
    return min(failed, key=lambda case: math.prod(case.dims.values()), default=None)


def _as_given(case: CaseResult) -> dict[str, object]:
    """A case as the test file's Case takes it."""
    return {
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "scale": case.scale,
        "parameters": dict(case.parameters),
        "holdout": case.holdout,
        "values": case.values,
    }


def _case(op: OpSpec) -> dict[str, object]:
    """The op's smallest listed case."""
    sweep = op.sweep
    dims = dict(zip(op.dims, min(sweep.shapes, key=math.prod), strict=True))
    scale = min(sweep.scales, key=lambda scale: abs(scale - 1))
    parameters = dict(op.parameters)
    return {"dims": dims, "dtype": sweep.dtypes[0], "scale": scale, "parameters": parameters, "holdout": False}


def _judged(report: Report, failed: CaseResult | None) -> list[str]:
    """What the judge saw, line by line, printable: some of it is the candidate's text."""
    if failed is None:
        lines = [report.message, *report.detail.split("\n")[-_LINES:]]
    elif failed.first_wrong:
        largest = f"max_abs {failed.max_abs:.4g}, max_rel {failed.max_rel:.4g}"
        lines = [f"{failed.wrong} of {failed.elements} elements wrong, {largest}"]
        for element in failed.first_wrong:
            index = ", ".join(map(str, element.index))
            lines.append(f"index {index}: got {element.got:.6g}, want {element.want:.6g}")
    else:
        lines = failed.detail.split("\n")[:1] or [report.message]
    return [printable(line, _LINE) for line in lines if line.strip()][: _LINES + 1]


def _one_call_shows_it(report: Report, failed: CaseResult | None) -> bool:
    """Whether a call that passes means that the failure is gone."""
    if failed is None:
        return report.status in _SHOWN and not report.cases
    return report.status in _SHOWN or bool(failed.first_wrong)  # without elements: seen over a series of calls


def _where(report: Report) -> str:
    versions = ", ".join(f"{name} {report.versions[name]}" for name in ("torch", "triton") if name in report.versions)
    return f"{report.device}, {versions}"


def _literal(text: str) -> str:
    """Python for a text, as readable as it can be: one raw literal where that means the same, else a line at a time."""
    raw = f"r'''{text}'''"
    if "'''" not in text and "\r" not in text and _evaluated(raw) == text:
        return raw
    return "(\n" + "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True) or [""]) + "\n)"


def _evaluated(literal: str) -> object:
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return None
