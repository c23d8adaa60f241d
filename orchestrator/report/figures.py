"""Plots as data: series of points, drawn by the page, and the same points as a table.

A figure's table is made from its series, so that no plot shows what its table does not. Knows no measurement.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How a series is drawn; the page gives each kind its line and its colours."""

    KERNEL = "kernel"
    BASELINE = "baseline"
    CEILING = "ceiling"
    POINTS = "points"  # without a line


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row heads it."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Point:
    """A point of a series, with a name where its x does not say which it is."""

    x: float | str
    y: float
    name: str = ""


@dataclass(frozen=True)
class Series:
    """Points in the order in which they are joined."""

    name: str
    kind: Kind
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Axis:
    """An axis; text on it where it is no number."""

    title: str
    scale: str = "log"  # log, linear, category
    digits: str = ".4g"  # of its numbers in the table


@dataclass(frozen=True)
class Figure:
    """A plot."""

    key: str  # unique on its page
    title: str
    about: str  # what to see in it, in one sentence
    x: Axis
    y: Axis
    series: tuple[Series, ...]

    @property
    def table(self) -> Table:
        """Its numbers: a row for each x, or each named point, and a column for each series that has one there."""
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for series in self.series:
            for point in series.points:
                at = (point.name, _number(point.x, self.x.digits))
                rows.setdefault(at, {})[series.name] = _number(point.y, self.y.digits)
        names = [series.name for series in self.series]
        named = any(name for name, _ in rows)
        return Table(
            f"{self.title}: {self.y.title}",
            (*(["point"] if named else []), self.x.title, *names),
            tuple(
                (*([name] if named else []), x, *(cells.get(series, "") for series in names))
                for (name, x), cells in rows.items()
            ),
        )

    @property
    def drawing(self) -> dict[str, Any]:
        """What the page draws."""
        axes = {"x": asdict(self.x), "y": asdict(self.y)}
        return {**axes, "title": self.title, "series": [_drawn(series) for series in self.series]}


def _drawn(series: Series) -> dict[str, Any]:
    points = series.points
    return {
        "name": series.name,
        "kind": series.kind,
        "x": [point.x for point in points],
        "y": [point.y for point in points],
        "names": [point.name for point in points],
    }


def _number(value: float | str, digits: str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else format(value, digits)
