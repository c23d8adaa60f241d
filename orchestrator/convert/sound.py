"""Whether the op's own checker is good enough, and what can be done where it is not.

Asks `ops check` and answers it as an author would: a decoy that a kind of values tells apart brings that kind into the
op; one that differs on infinite values alone, or by roundings that a tolerance must allow, is declared equivalent, with
the reason. Anything else stands, and the op is refused for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from orchestrator.convert import write
from orchestrator.convert.draft import Draft
from orchestrator.ops import Op
from orchestrator.ops.parts import VALUES
from orchestrator.records import DecoyResult, Fate, OpCheck

Check = Callable[[Op], Awaitable[OpCheck]]
_TRIES = 4
_NOT_FINITE = ("nan", "inf", "masked", "masked_row")  # on them a padded lane that counts is 0 times NaN or infinity
_NARROW = "arithmetic in half precision"


async def sound(draft: Draft, check: Check) -> tuple[Draft, OpCheck]:
    """The draft that rejects as many decoys as it can, and what becomes of each."""
    result = await check(write.op(draft))
    for _ in range(_TRIES):
        better = _answered(draft, result)
        if better == draft:
            break
        draft, result = better, await check(write.op(better))
    return draft, result


def _answered(draft: Draft, result: OpCheck) -> Draft:
    asked = draft.asked
    for one in result.decoys:
        if one.fate is not Fate.PASSED:
            continue
        kind = _kind(one)
        if kind in asked.judgeable and kind not in (*_NOT_FINITE, *asked.telling):
            asked = replace(asked, telling=(*asked.telling, kind))
        elif why := _reason(one, kind):
            asked = replace(asked, equivalent={**asked.equivalent, one.name: why})
    return replace(draft, asked=asked)


def _kind(one: DecoyResult) -> str:
    """The kind of values of the case on which it differs, where no listed case has it."""
    if "not on this one, which is not listed" not in one.detail:
        return ""
    parts = one.case.removesuffix("-holdout").split("-")
    return next((part for part in reversed(parts) if part in VALUES), "")


def _reason(one: DecoyResult, kind: str) -> str:
    """Why it need not be rejected; "" where it must."""
    if kind in _NOT_FINITE:
        return f"it differs on values that are not finite alone ({kind}), which the examples do not have"
    if one.name == _NARROW and "differs, and at most by" in one.detail:
        return f"its roundings are within what two right results may differ by ({one.detail.partition(':')[0]})"
    return ""
