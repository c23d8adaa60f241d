"""All checks by name, in the order in which they are made: what is nearest to the cause comes first."""

from __future__ import annotations

from orchestrator.errors import JudgeError
from orchestrator.judge.checks import CallCheck
from orchestrator.judge.checks.changed_element import changed_element
from orchestrator.judge.checks.compiles import compiles
from orchestrator.judge.checks.deterministic import deterministic
from orchestrator.judge.checks.device_trace import device_trace
from orchestrator.judge.checks.earlier_result import earlier_result
from orchestrator.judge.checks.every_configuration import every_configuration
from orchestrator.judge.checks.fresh_values import fresh_values
from orchestrator.judge.checks.global_state import global_state
from orchestrator.judge.checks.guarded_loads import guarded_loads
from orchestrator.judge.checks.host_operations import host_operations
from orchestrator.judge.checks.inputs_unchanged import inputs_unchanged
from orchestrator.judge.checks.launches import launches
from orchestrator.judge.checks.muted_launches import muted_launches
from orchestrator.judge.checks.other_warps import other_warps
from orchestrator.judge.checks.overruns import overruns
from orchestrator.judge.checks.own_storage import own_storage
from orchestrator.judge.checks.program_order import program_order
from orchestrator.judge.checks.recycled_memory import recycled_memory
from orchestrator.judge.checks.red_zones import red_zones
from orchestrator.judge.checks.series import SeriesCheck
from orchestrator.judge.checks.steady_state import steady_state
from orchestrator.judge.checks.zone_reads import zone_reads

_CALL: tuple[CallCheck, ...] = (
    host_operations,
    launches,
    inputs_unchanged,
    red_zones,
    overruns,
    own_storage,
    global_state,
)
_SERIES: tuple[SeriesCheck, ...] = (
    fresh_values,
    changed_element,
    deterministic,
    every_configuration,
    program_order,
    recycled_memory,
    zone_reads,
    guarded_loads,
    earlier_result,
    steady_state,
    muted_launches,
    other_warps,
    device_trace,
)


def call_checks(skip: tuple[str, ...]) -> list[CallCheck]:
    """The checks of every call, but for those switched off. Raises JudgeError for a name that is none."""
    known = {check.__name__ for check in (*_CALL, *_SERIES, compiles)}
    if unknown := sorted(set(skip) - known):
        raise JudgeError(f"there is no check {', '.join(unknown)}; checks are {', '.join(sorted(known))}")
    return [check for check in _CALL if check.__name__ not in skip]


def series_checks(skip: tuple[str, ...]) -> list[SeriesCheck]:
    """The checks that make further calls on a few cases, but for those switched off."""
    return [check for check in _SERIES if check.__name__ not in skip]
