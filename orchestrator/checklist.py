"""What a stage's kernel is held to, item by item, as the record answers it: a pure function of verdict and measurement.

Owns the items and what answers each. Nothing a model says of its kernel counts. What nothing here has seen is neither
met nor missed, and says what it would need.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator import weigh
from orchestrator.measured import BEST, COMPILED, Measured
from orchestrator.records import Attempt, Report, Status

_NO_GPU = "not measured here"


@dataclass(frozen=True)
class Item:
    """One thing asked. holds is None where nobody knows."""

    asked: str
    holds: bool | None
    evidence: str

    @property
    def told(self) -> str:
        """Whether it holds, in a word."""
        return {True: "yes", False: "no", None: "not known"}[self.holds]


def of(attempt: Attempt, measured: Measured | None, enough: float) -> tuple[Item, ...]:
    """The items; `measured` where it was timed, `enough` of the ceiling is a share from 0 to 1."""
    report = attempt.report
    return (
        Item("compiles", report.status is not Status.COMPILE_ERROR, f"on {report.device}"),
        Item("matches on every case", report.passed, f"{report.passed_cases} of {report.expected_cases}"),
        _edges(report),
        _coalesced(report, measured),
        _audited(report, "block sizes are powers of two", "arange-not-a-power"),
        _audited(report, "no needless synchronisation", "synchronisation"),
        _over(measured, BEST, "faster than the best kernel before it", "there was none, or it is the first stage"),
        _over(measured, COMPILED, "faster than torch.compile", _NO_GPU),
        _share(measured, enough),
    )


def _edges(report: Report) -> Item:
    """Cases that no writer saw beforehand, and values that tell."""
    drawn = sum(case.holdout for case in report.cases)
    telling = sum(case.values != "normal" for case in report.cases)
    holds = all(case.passed for case in report.cases if case.holdout or case.values != "normal")
    return Item(
        "edge cases", holds and bool(drawn), f"{drawn} cases drawn for the verdict, {telling} of telling values"
    )


def _coalesced(report: Report, measured: Measured | None) -> Item:
    """What each specialization became, as compiled ahead or as it was timed."""
    every = report.compiled or (measured.compiled if measured is not None else ())
    known = [one for one in every if one.uncoalesced is not None]
    apart = sorted({line for one in known for line in one.uncoalesced or ()})
    if not known:
        return Item("accesses coalesced", None, "nothing was compiled where its layouts are read")
    said = f"lanes lie apart in line {', '.join(map(str, apart))}" if apart else f"in {len(known)} specializations"
    return Item("accesses coalesced", not apart, said)


def _audited(report: Report, asked: str, rule: str) -> Item:
    """By the audit of the source, which says what it sees and proves nothing absent."""
    lines = [str(one.line) for one in report.audit if one.rule == rule]
    return Item(asked, not lines, f"{rule} in line {', '.join(lines)}" if lines else "nothing the audit sees")


def _over(measured: Measured | None, name: str, asked: str, unknown: str) -> Item:
    over = weigh.over_baseline(measured, name) if measured is not None and measured.shapes else None
    if over is None:
        return Item(asked, None, unknown)
    return Item(asked, over.middle > 1, f"{over.middle:.3f} times ({over.low:.3f} to {over.high:.3f})")


def _share(measured: Measured | None, enough: float) -> Item:
    asked = f"{100 * enough:.0f} % of the ceiling at every shape"
    rows = [row for row in weigh.rows(measured) if not row.launch_bound] if measured is not None else []
    if not rows:
        return Item(asked, None, _NO_GPU)
    low, high = min(row.ceiling_share for row in rows), max(row.ceiling_share for row in rows)
    return Item(asked, low >= enough, f"{100 * low:.0f} % to {100 * high:.0f} %, by shape")
