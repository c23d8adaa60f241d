"""What a person sees of a run, in a terminal and elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator import costs
from orchestrator.records import (
    Attempt,
    CaseResult,
    Decision,
    Finding,
    Judging,
    Reply,
    Report,
    Run,
    SandboxPiece,
    Status,
    Usage,
    Verdict,
)  # fmt: skip
from orchestrator.terminal import Terminal

HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold]PASSED[/bold]\r\n"


def shown(terminal: bool, *attempts: Attempt) -> str:
    screen = io.StringIO()
    watch = Terminal(Console(file=screen, force_terminal=terminal, width=120))
    pieces = (SandboxPiece("network namespace", False, "refused"),)
    run = Run("r1", "rmsnorm", "run/r1", "0" * 40, "now", "recorded")
    watch.run_started(run, Path("runs/r1"), Judging("CPU", True, {"triton": "3.7.1"}, pieces))
    for attempt in attempts:
        watch.asking(attempt.number, attempt.stage, attempt.round)
        watch.answered(attempt.number, Reply("text", attempt.model, attempt.usage))
        watch.judging(attempt.number)
        watch.judged(attempt)
    cost = costs.of_attempts(attempts, 0.0)
    ended = Run(
        **{**vars(run), "attempts": attempts, "cost": cost, "verdict": Verdict(Decision.ESCALATE, "a person looks")}
    )
    watch.decided(ended, Path("runs/r1"))
    watch.close()
    return screen.getvalue()


def attempt(report: Report) -> Attempt:
    return Attempt(1, "correct", 2, "openai", "some-model", "0" * 64, report, Usage(1.5, 100, 20), "c" * 40)


def wrong(name: str) -> CaseResult:
    figures = {"max_abs": 0.25, "max_rel": 0.5, "wrong": 3, "elements": 7, "tolerance_ratio": 12.0}
    return CaseResult(name, {"M": 1}, "float16", 1.0, False, Status.WRONG_VALUES, **figures)  # type: ignore[arg-type]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_round_its_end_the_cases_and_the_decision(terminal: bool) -> None:
    cases = tuple(wrong(f"float16-M{n}") for n in range(12))
    report = Report(
        Status.WRONG_VALUES, "12 of 51 cases failed", cases=cases, expected_cases=51, diagnosis=("So it is.",)
    )
    text = shown(terminal, attempt(report))
    for told in (
        *("stage correct, round 2", "some-model answered in 1.5 s, 20 tokens", "WRONG_VALUES: 12 of 51 cases failed"),
        *("So it is.", "float16-M7", "2.50e-01", "3/7", "and 4 more in the report", "ESCALATE: a person looks"),
        *("confinement without: network namespace", "100 tokens in, 20 out", "DECISION.md"),
    ):
        assert told in text, told
    assert "float16-M9" not in text
    assert ("\x1b" in text) is terminal


def test_a_measurement_is_told_a_line_a_shape_and_nothing_between() -> None:
    screen = io.StringIO()
    watch = Terminal(Console(file=screen, width=120))
    for text in ("4096x1024 float16: 9.42 us", "1x4096 float16: 5.10 us"):
        watch.measuring(text)
    watch.close()
    assert screen.getvalue().splitlines() == ["  4096x1024 float16: 9.42 us", "  1x4096 float16: 5.10 us"]


def test_several_proposals_of_a_round_are_told_apart() -> None:
    screen = io.StringIO()
    watch = Terminal(Console(file=screen, width=120))
    for number in (1, 2):
        watch.asking(number, "correct", 1)
    watch.answered(2, Reply("text", "some-model", Usage(1.5)))
    watch.judging(1)
    watch.judging(2)
    watch.asking(3, "correct", 2)
    watch.judging(3)
    assert screen.getvalue().splitlines() == [
        *("stage correct, round 1", "  asking for a proposal", "  and for another at the same time"),
        *("  some-model answered in 1.5 s", "  judging attempt 1", "  judging attempt 2"),
        *("stage correct, round 2", "  asking for a proposal", "  judging"),
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_candidates_text_cannot_reach_the_terminal_as_control_codes(terminal: bool) -> None:
    finding = Finding(Status.FORBIDDEN, f"k.py:1{HOSTILE}", HOSTILE, HOSTILE, HOSTILE)
    report = Report(Status.FORBIDDEN, HOSTILE, findings=(finding,), notes=(HOSTILE,), diagnosis=(HOSTILE,))
    text = shown(terminal, attempt(report))
    for code in ("\x1b[2J", "\x1b]0;", "\x07"):
        assert code not in text
    assert terminal or "\r" not in text  # in a terminal the spinner returns the carriage
    assert "[bold]PASSED[/bold]" in text, "markup is shown, not obeyed"
