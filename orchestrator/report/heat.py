"""The cases of a verdict as a map: shapes down, dtypes and scales across, and in each field how it ended.

Drawn as a table, so that it is read by eye, by keyboard and aloud: a field holds words, its shade repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.records import CaseResult, Parameter, Report, Status

_HOTTEST = 5
_LARGE = 1e6  # times the tolerance; beyond it only the power of ten is shown


@dataclass(frozen=True)
class Field:
    """One field: the cases of one shape, dtype and scale. Heat 0 passed, 1 to 5 failed, the worse the hotter."""

    text: str
    heat: int | None  # None: no such case


@dataclass(frozen=True)
class Row:
    """One shape, with its values where they are not the usual ones."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Heat:
    """The map. `columns`: a dtype and its scales."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]

    @property
    def failing(self) -> bool:
        """Whether a field of it failed."""
        return any(field.heat for row in self.rows for field in row.fields)


def heat(report: Report) -> Heat | None:
    """The map of a verdict's cases; None where nothing was run."""
    cases = report.cases
    if not cases:
        return None
    usual = _usual(cases)
    scales = {dtype: _scales(cases, dtype) for dtype in dict.fromkeys(case.dtype for case in cases)}
    rows: dict[str, list[CaseResult]] = {}
    for case in cases:
        rows.setdefault(_row(case, usual), []).append(case)
    return Heat(
        tuple((dtype, tuple(f"{scale:g}" for scale in some)) for dtype, some in scales.items()),
        tuple(
            Row(
                name,
                tuple(
                    _field([case for case in row if case.dtype == dtype and case.scale == scale])
                    for dtype, some in scales.items()
                    for scale in some
                ),
            )
            for name, row in rows.items()
        ),
    )


def _usual(cases: Sequence[CaseResult]) -> dict[str, Parameter]:
    """The parameters of the first listed case."""
    return dict(next((case.parameters for case in cases if not case.holdout), cases[0].parameters))


def _scales(cases: Sequence[CaseResult], dtype: str) -> list[float]:
    return sorted({case.scale for case in cases if case.dtype == dtype})


def _row(case: CaseResult, usual: dict[str, Parameter]) -> str:
    size = "×".join(map(str, case.dims.values()))
    other = [f"{name} = {value}" for name, value in case.parameters.items() if usual.get(name) != value]
    values = [] if case.values == "normal" else [case.values]
    drawn = ["drawn"] if case.holdout else []
    return ", ".join([size, *values, *other, *drawn])


def _field(cases: Sequence[CaseResult]) -> Field:
    if not cases:
        return Field("", None)
    failed = [case for case in cases if not case.passed]
    if not failed:
        return Field("passed", 0)
    worst = max(failed, key=_badness)
    return Field(_words(worst), _badness(worst))


def _words(case: CaseResult) -> str:
    if case.status is Status.WRONG_VALUES and case.tolerance_ratio is not None:
        return f"{case.tolerance_ratio:,.0f}×" if case.tolerance_ratio < _LARGE else f"{case.tolerance_ratio:.0e}×"
    return str(case.status)


def _badness(case: CaseResult) -> int:
    """By how many tolerances it is off, in steps of ten; the hottest where it did not come to values."""
    ratio = case.tolerance_ratio
    if case.status is Status.LOW_PRECISION:
        return 1
    if case.status is not Status.WRONG_VALUES or ratio is None or not math.isfinite(ratio):
        return _HOTTEST
    return max(1, min(_HOTTEST, 1 + int(math.log10(max(ratio, 1.0)))))
