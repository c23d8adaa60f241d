"""What other ways than reading the source brought of a file, and how that reads: compiled, judged, measured, sanitized.

Owns the sections of the report that come from running. Runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import decision
from orchestrator.audit import compiled
from orchestrator.audit.findings import AuditFinding
from orchestrator.audit.review import Review
from orchestrator.audit.sanitizer import Sanitized
from orchestrator.measured import Measured
from orchestrator.records import CaseResult, Report, Status
from orchestrator.text import cell, printable
from orchestrator.verifying import KernelFile, Verified


@dataclass(frozen=True)
class Evidence:
    """What was found beside the source. None: not asked for, or not to be had."""

    judged: Verified | None = None
    precision_bound: float | None = None  # of the op
    measured: Measured | None = None
    sanitized: Sanitized | None = None
    reviewed: Review | None = None

    @property
    def ways(self) -> tuple[str, ...]:
        """How the findings were come by."""
        ways = ["source"]
        if self.judged is not None:
            ways += ["compiling"] if self.judged.report.compiled else []
            ways += ["running"] if self.judged.report.cases else []
        ways += ["a model's claims"] if self.reviewed is not None else []
        return tuple(ways if len(ways) > 1 else ["source alone"])

    def findings(self, file: KernelFile) -> list[AuditFinding]:
        """What these ways show on the lines of the file."""
        found = list(compiled.findings(self.judged.report.compiled, file.data, file.name)) if self.judged else []
        found += self.sanitized.findings if self.sanitized is not None else ()
        lines = file.data.decode("utf-8", "replace").splitlines()
        return [*found, *(self.reviewed.findings(file.name, lines) if self.reviewed is not None else ())]


NOTHING_RUN = Evidence()
_NOT_COMPILED = "Not compiled: for which types and sizes, only a launch says; --op NAME has the judge launch it"


def sections(evidence: Evidence) -> list[str]:
    """All of them, for one file."""
    lines = ["", "## Compiled", "", *_compiled(evidence.judged)]
    if evidence.judged is not None:
        lines += ["", "## Judged", "", *_judged(evidence.judged.report, evidence.precision_bound)]
    if evidence.measured is not None:
        lines += ["", "## Measured", "", *_measured(evidence.measured)]
    if evidence.sanitized is not None:
        lines += ["", "## Sanitized", "", *evidence.sanitized.lines()]
    if evidence.reviewed is not None:
        lines += ["", "## Review by a model", "", *evidence.reviewed.lines()]
    return lines


def _compiled(judged: Verified | None) -> list[str]:
    if judged is None:
        return [f"{_NOT_COMPILED}."]
    report = judged.report
    if report.compiled:
        return compiled.table(report.compiled)
    if report.cases and not report.interpreted:
        return ["Not compiled ahead: that is done without a GPU, `--device cpu`."]
    return ["Not compiled: only what the judge lets through is."]


def _judged(report: Report, bound: float | None) -> list[str]:
    lines = [f"{report.status.value}: {report.message}"]
    if report.cases:
        device = f", on {report.device}" if report.device else ""
        lines += ["", f"{report.passed_cases} of {report.expected_cases} cases passed{device}."]
    lines += [f"- {one.where}: {one.message}; {one.advice}" for one in report.findings]
    lines += [f"- {line}" for line in (*report.diagnosis, *report.notes)]
    failed = next((case for case in report.cases if not case.passed), None)
    if failed is not None:
        lines.append(f"- first failing case: {failed.name}: {failed.status.value}: {failed.detail or failed.wrong_in}")
    if report.cases:
        lines += [f"- red zones: {_red_zones(report)}", "", *_precision(report.cases, bound)]
    return lines


def _red_zones(report: Report) -> str:
    """Whether memory around inputs and results stayed as it was."""
    touched = [case for case in report.cases if case.status is Status.OUT_OF_BOUNDS]
    if touched:
        first = printable(touched[0].detail.split("\n", 1)[0], 200)
        return f"touched in {len(touched)} of {len(report.cases)} cases, first in {touched[0].name}: {first}"
    return f"intact in each of the {len(report.cases)} cases that were run"


def _precision(cases: Sequence[CaseResult], bound: float | None) -> list[str]:
    """By dtype, how near the worst case comes to what is allowed."""
    allowed = f" (allowed: {bound:g})" if bound is not None else ""
    lines = [f"| dtype | worst share of the tolerance | worst error, in units of the reference's own{allowed} |"]
    lines.append("|---|---|---|")
    for dtype in dict.fromkeys(case.dtype for case in cases):
        mine = [case for case in cases if case.dtype == dtype]
        worst = [max((one for one in figures if one is not None), default=None) for figures in _figures(mine)]
        lines.append(f"| {cell(dtype)} | {' | '.join('' if one is None else f'{one:.3g}' for one in worst)} |")
    return lines


def _figures(cases: Sequence[CaseResult]) -> tuple[list[float | None], list[float | None]]:
    return [case.tolerance_ratio for case in cases], [case.precision for case in cases]


def _measured(measured: Measured) -> list[str]:
    """Times, and what share of the card's bandwidth or throughput they come to."""
    if measured.status is not Status.PASSED:
        return [f"{measured.status.value} while it was timed: {printable(measured.message, 300)}"]
    return decision.timings(measured).splitlines()
