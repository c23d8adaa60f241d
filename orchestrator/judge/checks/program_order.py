"""The result does not depend on the order in which the programs of a launch run.

Only in the interpreter, which otherwise runs them from the first to the last; a GPU promises no order, and runs many at
once. Catches: a program that reads what another of the same launch has written; overlapping stores of which the last
has to win. Other bits are no fault, because atomics then add in another order.
Cannot catch: a race that is lost in neither order. Left out for a kernel that waits for other programs in a loop, which
without the interpreter's order would wait for ever.
"""

from __future__ import annotations

import ast

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.checks.series import Series
from orchestrator.judge.ways import Way
from orchestrator.records import Status

_ELEMENTS = 1 << 16  # of a call that has several programs a row, where a kernel splits rows


def program_order(series: Series) -> None:
    """Raises CandidateFailed where the programs in reverse give a result that is not within the tolerance."""
    if series.device != "cpu" or _waits(series.proxy.kernel.read_bytes()):
        return
    for one in [series, *([series.largest(_ELEMENTS)] if series.once else [])]:
        if not one.agree(series.proxy.ask_in(Way.REVERSED, one.first).value, one.first.value):
            message = "right while programs run in order, wrong in reverse: programs of one launch depend on each other"
            raise CandidateFailed(Status.NONDETERMINISTIC, message)


def _waits(source: bytes) -> bool:
    """Whether a loop asks memory again and again: `while` with an atomic or a volatile load."""
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.While)]
    text = " ".join(ast.unparse(loop) for loop in loops)
    return "atomic_" in text or "volatile" in text
