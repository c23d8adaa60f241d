"""What a person reads of a decision: DECISION.md, ready for a pull request, and a measurement's table.

Owns which facts the templates get and how figures read. Holds no wording of its own.
"""

from __future__ import annotations

from orchestrator import bottleneck, checklist, costs, launching, resources, weigh
from orchestrator.decide import Thresholds
from orchestrator.judge.timing.statistics import CONFIDENCE, Interval
from orchestrator.measured import AS_WRITTEN, GpuState, Measured, Swept
from orchestrator.ops import Op
from orchestrator.records import Attempt, Judging, Run

_WAYS = 8  # to launch, fastest first, that are shown


def render(
    run: Run, op: Op, judging: Judging, best: Attempt | None, measured: Measured | None, swept: Swept | None = None
) -> str:
    """The decision of a run as Markdown. `measured` where the best kernel was timed, whatever that came to."""
    return _rendered(
        "DECISION.md.j2",
        run=run,
        op=op.spec,
        judging=judging,
        best=best,
        rows=weigh.rows(measured) if measured else (),
        timings=timings(measured) if measured and measured.shapes else "",
        sweep=sweep(swept),
        checklist=checklist.of(best, measured, op.spec.thresholds(Thresholds()).roofline_share) if best else (),
        cost=costs.told(run.cost),
    )


def timings(measured: Measured) -> str:
    """A measurement as Markdown: every shape, every baseline, the card."""
    return _rendered(
        "timings.md.j2",
        measured=measured,
        confidence=CONFIDENCE,
        rows=weigh.rows(measured),
        curve=weigh.curve(measured),
        where=bottleneck.where_time_goes(measured),
        over={name: weigh.over_baseline(measured, name) for name in weigh.baselines(measured)},
        absent={name: why for shape in measured.shapes for name, why in shape.absent.items()},
    )


def sweep(swept: Swept | None) -> str:
    """A sweep of launch parameters as Markdown; "" where there was none, or nothing to go by."""
    if swept is None or swept.fault:
        return ""
    every = launching.rows(swept)
    shown = [row for row in every if row in every[:_WAYS] or row.way.launch == AS_WRITTEN]
    failed = [way for way in swept.ways if way.failed]
    slower = sorted(way.slower for way in swept.ways if way.slower)
    return _rendered(
        "sweep.md.j2",
        swept=swept,
        rows=shown,
        ways=len(every),
        failed=failed,
        slower=slower,
        elsewhere=launching.elsewhere(swept),
    )


def _rendered(template: str, **facts: object) -> str:
    folder = resources.templates()
    environment = resources.environment(folder, interval=_interval, gpu=_gpu, known=_known, widths=_widths)
    return environment.get_template(template).render(**facts)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.middle:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _known(figure: int | None) -> str:
    return "?" if figure is None else str(figure)


def _widths(counts: dict[int, int] | None) -> str:
    """How many instructions of each width, widest first."""
    if counts is None:
        return "?"
    return ", ".join(f"{bits} x {counts[bits]}" for bits in sorted(counts, reverse=True)) or "none"


def _gpu(state: GpuState) -> str:
    """What the driver said of the GPU at one moment."""
    known = (
        ("SM {} MHz", state.sm_mhz),
        ("memory {} MHz", state.memory_mhz),
        ("{:.0f} W", state.power_w),
        ("{} °C", state.temperature_c),
        ("{} % busy", state.utilization),
    )
    return ", ".join(text.format(value) for text, value in known if value is not None) or "the driver does not say"
