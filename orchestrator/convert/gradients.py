"""The order in which a backward pass is made and checked, before anything is written or spent."""

from __future__ import annotations

from orchestrator.convert import backward, cases, flops
from orchestrator.convert.backward import Backward, Way
from orchestrator.convert.draft import Draft
from orchestrator.convert.prober import Prober
from orchestrator.errors import UsageError
from orchestrator.probed import Trial


async def made(way: Way, forward: Draft, probe: Prober) -> Backward:
    """The backward pass of the op, its gradients those of the original. Raises UsageError."""
    backward.refuse_in_place(forward)
    name = forward.cut.target.name
    found = await probe.differentiated(forward)
    if found.problem:
        raise UsageError(f"{name}: {found.problem}")
    op = backward.draft(forward, found) if way is Way.KERNEL else None
    module = backward.module(way, forward, found)
    trial = Trial(backward.smallest(forward), "float64") if op else None
    if why := await probe.gradients(forward, op or forward, module, trial):
        raise UsageError(f"{name} --backward {way}: {why}")
    return Backward(way, module, await flops.counted(await cases.judged(op, probe), probe) if op else None)
