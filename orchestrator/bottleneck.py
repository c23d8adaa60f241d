"""Where a kernel's time goes, in sentences, from what was measured and what the compiler made of it.

For a person whose kernel is slower than PyTorch, and for a model that is asked to change that. Says only what the
figures say: shares of the ceiling, launch overhead, and the compiled facts that usually stand behind a low share.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator import weigh
from orchestrator.judge.timing.statistics import median
from orchestrator.measured import Measured
from orchestrator.weigh import Row

_SHAPES = 3  # named
_ENOUGH = 0.92  # of the ceiling: nothing worth gaining
_WIDE = 128  # bits: the widest access of one thread
_APART = 1.05  # times as long in one process as in most: more than where its data happen to lie
_IDLE = 0.5  # occupancy below which waiting for memory may not be hidden


def where_time_goes(measured: Measured) -> tuple[str, ...]:
    """The sentences; none where nothing was timed."""
    rows = weigh.rows(measured)
    return (*_behind(rows), *_apart(rows), *_launches(rows), *_compiled(measured)) if rows else ()


def compiled_facts(measured: Measured) -> tuple[str, ...]:
    """Each specialization of the kernel in a line."""
    return tuple(
        f"{one.kernel} for {one.target}, {one.warps} warps: {_told(one.registers)} registers, "
        f"{_told(one.spilled_bytes)} bytes spilled, {_told(one.shared_bytes)} bytes shared, loads of up to "
        f"{_told(max(one.load_bits, default=None) if one.load_bits is not None else None)} bits, occupancy "
        f"{'unknown' if one.occupancy is None else _percent(one.occupancy)}"
        for one in measured.compiled
    )


def _behind(rows: tuple[Row, ...]) -> Iterator[str]:
    """The shapes that lag, worst first: behind a baseline, or behind the card."""
    lagging = [row for row in rows if not row.launch_bound and (row.speedup.middle < 1 or row.ceiling_share < _ENOUGH)]
    for row in sorted(lagging, key=lambda row: (row.speedup.middle, row.ceiling_share))[:_SHAPES]:
        theirs = row.ceiling_share / row.speedup.middle
        yield (
            f"{row.name}: {row.latency_us:.2f} µs, {row.speedup.middle:.2f} times the speed of {row.best}; "
            f"{_percent(row.ceiling_share)} of the ceiling, where that reaches {_percent(theirs)}"
        )
    if len(lagging) > _SHAPES:
        more = len(lagging) - _SHAPES
        yield f"{more} more of {len(rows)} shapes are behind a baseline or below {_percent(_ENOUGH)} of the ceiling"


def _apart(rows: tuple[Row, ...]) -> Iterator[str]:
    """That some processes of the kernel's are slower than the others, where it is the most."""
    each = [(max(row.by_process) / median(row.by_process), row) for row in rows if not row.launch_bound]
    slow = [(times, row) for times, row in each if times > _APART]
    if not slow:
        return
    times, row = max(slow, key=lambda one: one[0])
    count = sum(us > _APART * median(row.by_process) for us in row.by_process)
    yield (
        f"{row.name}: in {count} of {len(row.by_process)} processes up to {max(row.by_process):.2f} µs, "
        f"{_percent(times - 1)} more than usual, and so at {len(slow)} of {len(rows)} shapes: an autotuner that takes "
        "another way each time does that"
    )


def _launches(rows: tuple[Row, ...]) -> Iterator[str]:
    beyond = [(row.call_us - row.latency_us, row) for row in rows if row.call_us is not None]
    if not beyond:
        return
    typical = median([us for us, _ in beyond])
    if typical <= 0:
        return
    longer = sum(us > row.latency_us for us, row in beyond)
    yield (
        f"a plain call takes {typical:.1f} µs beyond the kernel (median): launch and host code; at {longer} of "
        f"{len(beyond)} shapes that is more than the kernel itself"
    )


def _compiled(measured: Measured) -> Iterator[str]:
    """What of the compiled kernels is likely to cost time, worst case of all specializations."""
    every = measured.compiled
    if spilled := max((one.spilled_bytes or 0 for one in every), default=0):
        yield f"registers spill, up to {spilled} bytes a thread: a block is too large for its warps"
    narrow = [one for one in every if one.load_bits and not one.bulk_copies and max(one.load_bits) < _WIDE]
    if narrow:
        widest = min(max(one.load_bits or {0: 0}) for one in narrow)
        yield (
            f"{len(narrow)} of {len(every)} specializations load at most {widest} bits a thread at a time, of {_WIDE}: "
            "addresses are not known to be aligned or not contiguous, or a block is small for its warps"
        )
    shares = [one.occupancy for one in every if one.occupancy is not None]
    if shares and min(shares) < _IDLE:
        yield f"as few as {_percent(min(shares))} of a multiprocessor's warps fit beside each other (an estimate)"
    if every and measured.matmul_tflops and not any(one.tensor_cores for one in every):
        yield "nothing is multiplied on the tensor cores, and the op is bound by multiplying"


def _told(figure: int | None) -> str:
    return "unknown" if figure is None else str(figure)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
