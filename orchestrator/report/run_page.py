"""A run as its page tells it: the decision and its table, each round, what was measured. Pure functions of records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator import decide, explain, reply, rounds, weigh
from orchestrator.decide import Line
from orchestrator.judge.timing.statistics import CONFIDENCE
from orchestrator.measured import Measured
from orchestrator.records import AuditFinding, Finding, Measurement, Run
from orchestrator.report import changes, marks
from orchestrator.report.changes import Change
from orchestrator.report.figures import Table
from orchestrator.report.gather import Told, Tried
from orchestrator.report.heat import Heat, heat
from orchestrator.report.marks import Mark
from orchestrator.text import printable

_WORDS = 3000  # characters of a reply beside its code that are shown
_ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s")
_NAME = 60  # of a model


@dataclass(frozen=True)
class Round:
    """One attempt. `cause` is what the reply says beside its code; of a repair, the cause that the model names."""

    number: int
    stage: str
    round: int
    status: Mark
    message: str
    detail: str
    cause: tuple[str, ...]
    repair: bool
    cases: str
    diagnosis: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    audit: tuple[AuditFinding, ...]
    heat: Heat | None
    change: Change | None
    since: str  # what the change is against, in words
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RunPage:
    """A run."""

    id: str
    op: str
    title: str
    decision: Mark
    reason: str
    error: str
    why: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    otherwise: str  # why the decision is not what the table says; "" where it is
    rounds: tuple[Round, ...]
    timings: Table | None
    unmeasured: str  # why there is nothing measured; "" where there is
    remarks: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]  # pieces of the confinement


def page(told: Told) -> RunPage:
    """The whole page."""
    run = told.run
    lines = _lines(told)
    judging = told.judging
    return RunPage(
        id=run.id,
        op=run.op,
        title=told.title,
        decision=marks.decision(run),
        reason=run.verdict.reason if run.verdict else "",
        error=run.error,
        why=explain.run(run, told.thresholds)[1:],
        facts=tuple(_facts(told)),
        lines=lines,
        otherwise=_otherwise(told, lines),
        rounds=tuple(_rounds(told.tried)),
        timings=timings(told.measured) if told.measured else None,
        unmeasured="" if told.measured else _unmeasured(told),
        remarks=run.remarks,
        missing=tuple((piece.name, piece.detail) for piece in judging.sandbox if not piece.held) if judging else (),
    )


def timings(measured: Measured) -> Table:
    """Every shape that was timed, with what it is decided by."""
    head = ("shape", "latency", "a plain call", "GB/s", "of the ceiling", f"speedup ({CONFIDENCE} %)", "over", "counts")
    rows = [
        (
            row.name,
            f"{row.latency_us:.2f} µs",
            f"{row.call_us:.1f} µs" if row.call_us else "",
            f"{row.gbps:,.0f}",
            marks.share(row.ceiling_share),
            f"{row.speedup.middle:.3f} ({row.speedup.low:.3f} to {row.speedup.high:.3f})",
            row.best,
            "no, launch-bound" if row.launch_bound else "yes" if counts else "no, shown only",
        )
        for some, counts in ((weigh.rows(measured), True), (weigh.curve(measured), False))
        for row in some
    ]
    return Table("Every shape that was timed", head, tuple(rows))


def _lines(told: Told) -> tuple[Line, ...]:
    """The decision table as this run filled it in."""
    run = told.run
    verdict = run.verdict
    ended = rounds.furthest(run)
    return decide.table(
        ended.status if ended else None,
        run.best is not None,
        run.measurement,
        told.thresholds,
        unmeasured_reason=verdict.reason if verdict else "",
        rounds=rounds.had(run, told.rounds),
        rungs_done=_done(told.stages, run.measurement),
        persist=told.persist,
        objection=_objection(run),
    )


def _objection(run: Run) -> str:
    """What the audit established against the attempt that the run is decided by, as its record has it."""
    by = explain.deciding(run)
    if by is None or not by.report.grave:
        return ""
    grave = ", ".join(f"{one.rule} in line {one.line}" for one in by.report.grave)
    return f"of attempt {by.number} the audit establishes {grave}"


def _done(stages: tuple[str, ...], found: Measurement | None) -> tuple[str, ...]:
    """The stages that were behind the run when it was decided."""
    return stages if found is None else stages[: len(stages) - found.rungs_left]


def _otherwise(told: Told, lines: tuple[Line, ...]) -> str:
    verdict = told.run.verdict
    if verdict is None:
        return "This run has no decision; the table shows what its record would come to."
    decided = next(line.decision for line in lines if line.holds)
    if decided is verdict.decision:
        return ""
    return f"The table comes to {decided} now; the run was decided otherwise: {verdict.reason}"


def _facts(told: Told) -> Iterator[tuple[str, str]]:
    run, judging = told.run, told.judging
    usages = [attempt.usage for attempt in run.attempts]
    yield "started", marks.day(run.started)
    yield "took", f"{run.seconds:.0f} s"
    yield "agent", run.agent + (f", {printable(run.attempts[-1].model, _NAME)}" if run.attempts else "")
    yield "rounds", str(len(run.attempts))
    yield "tokens", marks.tokens(usages)
    yield "cost", marks.cost(usages)
    yield "speedup", marks.speedup(run.measurement)
    if run.measurement is not None:
        yield "of the ceiling", f"{marks.share(run.measurement.roofline_share)} at the worst shape that can reach it"
        yield "noise", f"{run.measurement.spread:.1%}"
    if judging is not None:
        yield "judged on", judging.device
        yield "versions", ", ".join(f"{name} {version}" for name, version in judging.versions.items())
    yield "branch", run.branch
    if told.merge_commit:
        yield "merged as", told.merge_commit[:12]


def _rounds(tried: tuple[Tried, ...]) -> Iterator[Round]:
    before: Tried | None = None
    for one in tried:
        yield _round(one, before)
        before = one if one.kernel is not None else before


def _round(one: Tried, before: Tried | None) -> Round:
    attempt, report = one.attempt, one.attempt.report
    return Round(
        number=attempt.number,
        stage=attempt.stage,
        round=attempt.round,
        status=marks.status(report.status),
        message=report.message,
        detail=report.detail,
        cause=_paragraphs(reply.words(one.reply)) if one.reply is not None else (),
        repair=attempt.round > 1,
        cases=f"{report.passed_cases} of {report.expected_cases}" if report.expected_cases else "not run",
        diagnosis=report.diagnosis,
        findings=report.findings,
        notes=report.notes,
        audit=report.audit,
        heat=heat(report),
        change=changes.change(before.kernel if before else None, one.kernel),
        since=f"since attempt {before.attempt.number}" if before else "the whole file",
        facts=tuple(_attempt_facts(one)),
    )


def _attempt_facts(one: Tried) -> Iterator[tuple[str, str]]:
    attempt, report = one.attempt, one.attempt.report
    yield "model", printable(attempt.model, _NAME)
    yield "tokens", marks.tokens([attempt.usage])
    yield "cost", marks.cost([attempt.usage])
    if attempt.usage.requests:
        yield "answered in", f"{attempt.usage.latency_s:.1f} s"
    if "total" in report.seconds:
        yield "judged in", f"{report.seconds['total']:.1f} s"
    if report.seed is not None:
        yield "seed", str(report.seed)
    if attempt.commit:
        yield "commit", attempt.commit[:12]


def _unmeasured(told: Told) -> str:
    verdict = told.run.verdict
    if told.run.best is None:
        return "Nothing was measured: only a correct kernel is, and none passed."
    return f"Nothing was measured. {verdict.reason if verdict else 'The run was not decided.'}"


def _paragraphs(text: str) -> tuple[str, ...]:
    """Lines joined to paragraphs and items of lists; what would turn the direction of reading is spelled out."""
    paragraphs = [""]
    for line in text[:_WORDS].splitlines():
        if not line.strip() or _ITEM.match(line):
            paragraphs.append("")
        paragraphs[-1] = f"{paragraphs[-1]} {printable(line.strip(), _WORDS)}".strip()
    cut = ["…"] if len(text) > _WORDS else []
    return (*filter(None, paragraphs), *cut)
