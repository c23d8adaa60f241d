"""Why a run or an attempt was decided so, in ten lines at most: a pure function of the record.

Owns which facts answer that question and in which order. Judges nothing; the words of a decision are `decide`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator import repro, rounds
from orchestrator.decide import Thresholds
from orchestrator.records import Attempt, CaseResult, Measurement, Report, Run
from orchestrator.text import printable

LINES = 10
_MODEL = 60  # characters of its name
_ELEMENTS = 3  # wrong elements that are shown


def run(record: Run, thresholds: Thresholds) -> tuple[str, ...]:
    """Why the run was decided so: by its best attempt, or by its last round where none passed."""
    return tuple(_run(record, thresholds))[:LINES]


def attempt(one: Attempt) -> tuple[str, ...]:
    """Why the attempt ended so."""
    return tuple(_attempt(one))[:LINES]


def deciding(record: Run) -> Attempt | None:
    """The attempt that a run was decided by."""
    if record.best is not None:
        return record.attempts[record.best - 1]
    return rounds.furthest(record)


def _run(record: Run, thresholds: Thresholds) -> Iterator[str]:
    if record.error:
        yield f"what ended it: {printable(record.error, 400)}"
    verdict = record.verdict
    yield f"{verdict.decision}: {printable(verdict.reason, 400)}" if verdict else "not decided"
    if record.measurement is not None:
        yield from _measured(record.measurement, thresholds)
    if (by := deciding(record)) is not None:
        yield from _attempt(by)


def _measured(found: Measurement, thresholds: Thresholds) -> Iterator[str]:
    margin = max(found.spread, thresholds.margin_floor)
    above, below = found.speedup_low >= 1 + margin, found.speedup_high < 1 - margin
    place = "wholly above" if above else "wholly below" if below else "not clear of"
    yield (
        f"measured: {found.speedup_low:.3f} to {found.speedup_high:.3f} times {printable(found.baseline)}, {place} "
        f"1 and the margin of {margin:.1%} (noise {found.spread:.1%}, floor {thresholds.margin_floor:.1%})"
    )
    yield (
        f"slowest shape: {found.slowest_shape} at {found.slowest_speedup:.3f} times; "
        f"{found.roofline_share:.1%} of the ceiling (enough from {thresholds.roofline_share:.0%})"
    )


def _attempt(one: Attempt) -> Iterator[str]:
    report = one.report
    yield (
        f"attempt {one.number} ({one.stage}, round {one.round}, {printable(one.model, _MODEL)}): "
        f"{report.status}, {printable(report.message, 400)}"
    )
    failed = repro.smallest(report)
    if failed is not None and not report.passed:
        yield f"smallest failing case: {_case(failed)}"
        if failed.first_wrong:
            yield f"first wrong elements: {_wrong(failed)}"
        elif failed.detail:
            yield f"there: {printable(failed.detail.strip().splitlines()[0], 400)}"
    for sentence in report.diagnosis[:2]:
        yield f"pattern: {printable(sentence, 400)}"
    for finding in report.findings[:2]:
        yield f"found: {finding.where}: {finding.message}; instead: {finding.advice}"
    for fault in report.grave[:2]:
        yield f"the audit establishes: {fault.rule} in line {fault.line}: {printable(fault.message, 400)}"
    if report.seed is not None:
        yield _judged(report)


def _case(case: CaseResult) -> str:
    dims = ", ".join(f"{name} = {size}" for name, size in case.dims.items())
    kind = "" if case.values == "normal" else f", {case.values} values"
    told = f"{dims}, {case.dtype}, scale {case.scale:g}{kind}{', drawn for this verdict' if case.holdout else ''}"
    if case.max_abs is None or case.tolerance_ratio is None:
        return f"{told}: {case.status}"
    return (
        f"{told}: {case.status}, {case.wrong} of {case.elements} elements wrong, "
        f"off by {case.max_abs:.3g} at most, {case.tolerance_ratio:.3g} times the tolerance"
    )


def _wrong(case: CaseResult) -> str:
    shown = case.first_wrong[:_ELEMENTS]
    return "; ".join(f"{list(one.index)} got {one.got:.6g}, want {one.want:.6g}" for one in shown)


def _judged(report: Report) -> str:
    cases = f"{report.passed_cases} of {report.expected_cases} cases passed"
    return f"judged on {report.device} with seed {report.seed}: {cases}"
