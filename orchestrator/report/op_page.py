"""An op as its page tells it: its champion, how fast it is from size to size, and how it came to be."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.measured import Measured
from orchestrator.report import curves, marks
from orchestrator.report.figures import Figure, Table
from orchestrator.report.gather import Gathered, Told
from orchestrator.report.marks import Mark
from orchestrator.report.run_page import timings


@dataclass(frozen=True)
class RunRow:
    """A run in the list of an op's runs."""

    id: str
    linked: bool  # whether it has a page
    started: str
    decision: Mark
    rounds: int
    speedup: str
    ceiling: str
    noise: str
    cost: str
    merge_commit: str
    stands: bool  # whether its kernel is the champion now


@dataclass(frozen=True)
class OpPage:
    """An op. `shown` is the run whose measurement the plots are of."""

    name: str
    title: str
    shown: RunRow | None
    because: str  # which run that is, in words; where there is none, why
    pairs: tuple[tuple[Figure, Figure], ...]  # latency and bandwidth over one dim
    roofline: Figure | None
    timings: Table | None
    gpu: str
    champions: tuple[RunRow, ...]  # newest first
    runs: tuple[RunRow, ...]  # newest first


def page(name: str, gathered: Gathered) -> OpPage:
    """The page of an op from all its runs."""
    runs = tuple(told for told in gathered.told if told.run.op == name)
    rows = {told.run.id: _row(told, gathered) for told in runs}
    shown = next((told for told in reversed(runs) if told.run.id in gathered.champions and told.measured), None)
    because = "the champion's"
    if shown is None:
        shown = next((told for told in reversed(runs) if told.measured), None)
        because = "the newest run's that was measured" if shown else "No run of this op was measured."
    measured = shown.measured if shown else None
    sweeps = curves.sweeps(measured) if measured else ()
    return OpPage(
        name=name,
        title=runs[-1].title,
        shown=rows[shown.run.id] if shown else None,
        because=because,
        pairs=tuple((curves.latency(sweep), curves.bandwidth(sweep)) for sweep in sweeps),
        roofline=curves.roofline(measured) if measured else None,
        timings=timings(measured) if measured else None,
        gpu=_gpu(measured),
        champions=tuple(rows[told.run.id] for told in reversed(runs) if told.merged),
        runs=tuple(rows[told.run.id] for told in reversed(runs)),
    )


def _row(told: Told, gathered: Gathered) -> RunRow:
    run = told.run
    found = run.measurement
    return RunRow(
        id=run.id,
        linked=run.id in gathered.chosen,
        started=marks.day(run.started),
        decision=marks.decision(run),
        rounds=len(run.attempts),
        speedup=marks.speedup(found),
        ceiling=marks.share(found.roofline_share if found else None),
        noise=f"{found.spread:.1%}" if found else "",
        cost=marks.cost(attempt.usage for attempt in run.attempts),
        merge_commit=told.merge_commit[:12],
        stands=run.id in gathered.champions,
    )


def _gpu(measured: Measured | None) -> str:
    if measured is None or measured.before is None:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
    return f"{measured.before.name}, driver {measured.before.driver}, {versions}; {measured.rounds} rounds a shape"
