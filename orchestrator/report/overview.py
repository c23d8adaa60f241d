"""All ops at a glance, and how the batches fared night after night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import weigh
from orchestrator.judge.timing.statistics import median
from orchestrator.records import Usage
from orchestrator.report import marks
from orchestrator.report.figures import Axis, Figure, Kind, Point, Series
from orchestrator.report.gather import Gathered, Night, Told
from orchestrator.report.marks import Mark

_TREND = 2  # batches that make one


@dataclass(frozen=True)
class OpRow:
    """The newest run of an op, of those that are shown."""

    op: str
    title: str
    run: str
    decision: Mark
    passed: str  # attempts that passed, of all
    cases: str  # of the deciding attempt
    ceiling: str
    speedup: str
    tokens: str
    cost: str
    started: str


@dataclass(frozen=True)
class Overview:
    """The first page."""

    rows: tuple[OpRow, ...]
    decisions: tuple[tuple[Mark, int], ...]
    runs: int
    attempts: int
    tokens: str
    cost: str
    trend: Figure | None
    untrended: str  # why there is no trend; "" where there is
    unreadable: tuple[str, ...]


def overview(gathered: Gathered) -> Overview:
    """The first page, of the runs that are shown; the trend is over all batches."""
    shown = [told for told in gathered.told if told.run.id in gathered.chosen]
    newest = {told.run.op: told for told in shown}  # the later ones last
    rows = tuple(_row(told) for _, told in sorted(newest.items()))
    usages = _usages(shown)
    trend = _trend(gathered)
    return Overview(
        rows=rows,
        decisions=tuple(Counter(row.decision for row in rows).most_common()),
        runs=len(shown),
        attempts=len(usages),
        tokens=marks.tokens(usages),
        cost=marks.cost(usages),
        trend=trend,
        untrended="" if trend else f"A trend takes {_TREND} batches or more; there are {len(gathered.nights)}.",
        unreadable=gathered.unreadable,
    )


def best_ceiling_share(told: Told) -> float | None:
    """The best share of the ceiling over the shapes that count; None where nothing was measured."""
    if told.measured is None:
        return None
    rows = weigh.rows(told.measured)
    counting = [row for row in rows if not row.launch_bound] or list(rows)
    return max(row.ceiling_share for row in counting)


def _row(told: Told) -> OpRow:
    run = told.run
    by = run.attempts[(run.best or len(run.attempts)) - 1].report if run.attempts else None
    passed = sum(attempt.report.passed for attempt in run.attempts)
    usages = _usages([told])
    return OpRow(
        op=run.op,
        title=told.title,
        run=run.id,
        decision=marks.decision(run),
        passed=f"{passed} of {len(run.attempts)}",
        cases=f"{by.passed_cases} of {by.expected_cases}" if by and by.expected_cases else "not run",
        ceiling=marks.share(best_ceiling_share(told)) or "not measured",
        speedup=marks.speedup(run.measurement),
        tokens=marks.tokens(usages),
        cost=marks.cost(usages),
        started=marks.day(run.started),
    )


def _trend(gathered: Gathered) -> Figure | None:
    told = {one.run.id: one for one in gathered.told}
    nights = [(night, [told[run] for run in night.runs if run in told]) for night in gathered.nights]
    begun = [(night, runs) for night, runs in nights if runs]
    if len(begun) < _TREND:
        return None
    measures = (
        ("ops accepted", Kind.KERNEL, _accepted),
        ("attempts passed", Kind.BASELINE, _passed),
        ("best share of the ceiling, median over ops", Kind.BASELINE, _ceiling),
    )
    return Figure(
        *(
            "trend",
            "What each batch came to",
            "Higher is better. A batch in which nothing was measured has no ceiling share.",
        ),
        Axis("batch", "category"),
        Axis("percent", "linear"),
        tuple(
            Series(
                name, kind, tuple(Point(_when(night), 100 * y) for night, runs in begun if (y := of(runs)) is not None)
            )
            for name, kind, of in measures
        ),
    )


def _accepted(runs: Sequence[Told]) -> float | None:
    accepted = [one.run.verdict is not None and one.run.verdict.decision in marks.ACCEPTED for one in runs]
    return sum(accepted) / len(accepted)


def _passed(runs: Sequence[Told]) -> float | None:
    attempts = [attempt.report.passed for one in runs for attempt in one.run.attempts]
    return sum(attempts) / len(attempts) if attempts else None


def _ceiling(runs: Sequence[Told]) -> float | None:
    shares = [share for one in runs if (share := best_ceiling_share(one)) is not None]
    return median(shares) if shares else None


def _when(night: Night) -> str:
    return marks.day(night.started).removesuffix(" UTC")


def _usages(told: Sequence[Told]) -> list[Usage]:
    return [attempt.usage for one in told for attempt in one.run.attempts]
