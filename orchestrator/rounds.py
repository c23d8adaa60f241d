"""A round of a run: the attempts that answer one prompt, and which of them stands for it.

Pure functions of the record. One attempt a round unless more samples were asked for; they are next to each other and
have stage and round in common.
"""

from __future__ import annotations

from itertools import takewhile

from orchestrator.records import Attempt, Run, Status


def last(run: Run) -> tuple[Attempt, ...]:
    """The attempts of the newest round, in order; none where nothing was attempted."""
    if not run.attempts:
        return ()
    newest = run.attempts[-1]
    same = takewhile(lambda one: (one.stage, one.round) == (newest.stage, newest.round), reversed(run.attempts))
    return tuple(same)[::-1]


def ranked(run: Run) -> tuple[Attempt, ...]:
    """The attempts of the newest round, what came furthest first: by failing cases, and of equals by number."""
    return tuple(sorted(last(run), key=_short_of))


def furthest(run: Run) -> Attempt | None:
    """The attempt that stands for the newest round; None where nothing was attempted."""
    return next(iter(ranked(run)), None)


def had(run: Run, allowed: int) -> int:
    """How many rounds it was given: none where it ended with the person's kernel, since there was no model to ask."""
    return allowed if any(one.round for one in run.attempts) else 0


def answered(attempt: Attempt) -> bool:
    """Whether there was a reply to judge. A call that failed beside others of its round was judged nowhere."""
    return attempt.status is not Status.INFRASTRUCTURE or bool(attempt.report.device)


def challengers(run: Run) -> tuple[int, ...]:
    """The attempts that may be measured, in order: the best if it was not, else what the newest round brought beside
    it.
    """
    if run.best is None:
        return ()
    if run.measurement is None:
        return (run.best,)
    return tuple(one.number for one in last(run) if one.report.accepted and one.number != run.best)


def _short_of(attempt: Attempt) -> tuple[int, int]:
    """How far from being accepted. What was refused or ended before a case was compared is behind all that failed in
    cases; what failed by a fault of ours is behind that, and what was never answered is last.
    """
    report = attempt.report
    if report.passed:
        return 0, int(not report.accepted)
    if report.status is Status.INFRASTRUCTURE:
        return 3, int(not answered(attempt))
    if not report.cases:
        return 2, 0
    return 1, report.expected_cases - report.passed_cases
