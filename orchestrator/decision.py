"""What a person reads of a decision: DECISION.md, ready for a pull request, and a measurement's table.

Owns which facts the templates get and how figures read. Holds no wording of its own.
"""

from __future__ import annotations

from orchestrator import resources, weigh
from orchestrator.judge.timing.statistics import Interval
from orchestrator.measured import GpuState, Measured
from orchestrator.ops import Op
from orchestrator.records import Attempt, Judging, Run


def render(run: Run, op: Op, judging: Judging, best: Attempt | None, measured: Measured | None) -> str:
    """The decision of a run as Markdown. `measured` where the best kernel was timed, whatever that came to."""
    return _rendered(
        "DECISION.md.j2",
        run=run,
        op=op.spec,
        judging=judging,
        best=best,
        rows=weigh.rows(measured) if measured else (),
        timings=timings(measured) if measured and measured.shapes else "",
    )


def timings(measured: Measured) -> str:
    """A measurement as Markdown: every shape, every baseline, the card."""
    return _rendered(
        "timings.md.j2",
        measured=measured,
        rows=weigh.rows(measured),
        curve=weigh.curve(measured),
        over={name: weigh.over_baseline(measured, name) for name in weigh.baselines(measured)},
        absent={name: why for shape in measured.shapes for name, why in shape.absent.items()},
    )


def _rendered(template: str, **facts: object) -> str:
    environment = resources.environment(resources.templates(), interval=_interval, gpu=_gpu)
    return environment.get_template(template).render(**facts)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.middle:.3f} ({interval.low:.3f} to {interval.high:.3f})"


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
