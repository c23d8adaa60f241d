"""The cases of an op to be, chosen by what the reference does on them: shapes, scales, telling values, tolerances.

A tolerance is measured, not guessed: from how far the reference in float32 is from itself in float64, and from what it
costs to change the inputs in their last place, which is the least that an honest kernel does. A case on which that
is much is left out, because there a verdict would be chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from orchestrator import arithmetic
from orchestrator.convert import dims
from orchestrator.convert.asks import Asks
from orchestrator.convert.dims import Sizes
from orchestrator.convert.draft import HALF, Draft, Values
from orchestrator.convert.spec import telling_shape
from orchestrator.convert.vary import follows
from orchestrator.errors import UsageError
from orchestrator.ops.parts import LAYOUTS, VALUES
from orchestrator.probed import Outcome, Trial
from orchestrator.records import Parameter

_SMALL, _LARGER = 1e-3, (30.0, 8.0, 3.0)  # scales of the inputs; of the larger ones the largest that can be judged
_USUAL = (
    "rows",
    "columns",
    "offset",
    "zero_row",
    "nan",
    "large",
    *LAYOUTS,
)  # asked of each op that can be judged on them
_REL = {
    "float32": 1e-5,
    "float16": 1.1e-3,
    "bfloat16": 8.6e-3,
}  # of half precision, a step between two results that are rounded
_EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}
_MARGIN = 8.0  # of a tolerance over what was measured
_CHANCE = 4.0  # units of the reference's own error that rounding the inputs may cost; beyond it a verdict is chance
_LEAST_PRECISION = 8.0
_REL_64 = 1e-12
_LEAST_PRECISION_64 = 16.0  # float64's own reference has no error, and a sum in another order has some
_WORSE = 10.0  # times less exact than at scale 1; beyond it the one tolerance would be loose at the others
_FAR_LARGER = 10.0  # a result that another sign makes so much larger: then the sign belongs to the input
_SLOW_S = 0.5  # of one call of the reference, on a machine without a GPU
_SEEDS = 4
_DRAWS = 32  # of each kind of telling values
_FACTOR, _POWERS = 8.0, 8  # another value of a parameter: the first of so many powers that changes the results plainly
_INSTEAD_OF_0 = (0.125, 1.0, 8.0)
_PLAIN = 0.02  # of the results' size: what rounding in half precision does not hide
_GPU_ELEMENTS = 1 << 24
_SMALL_OUTPUT = 16


async def chosen(draft: Draft, probe: Asks) -> Draft:
    """The draft with its cases. Raises UsageError where there is none to choose."""
    return await judged(await _parameters(await _signed(draft, probe), probe), probe)


async def judged(draft: Draft, probe: Asks) -> Draft:
    """The draft, whose values and parameters are known, with the cases on which it can be judged."""
    shapes, left = await _shapes(draft, probe)
    empty = await _empty(draft, probe)
    draft = replace(draft, asked=replace(draft.asked, shapes=shapes, empty=empty, large=_large(draft)))
    scales, kinds = await _scales(draft, probe), await _kinds(draft, probe)
    telling = tuple(kind for kind in kinds if kind in _USUAL)
    asked = replace(draft.asked, scales=scales, telling=telling, judgeable=tuple(kinds))
    draft = replace(draft, asked=asked)
    measured = await _measured(draft, probe)
    tolerance, precision = _tolerance(draft, measured), _precision(measured)
    if "float64" in draft.dtypes:
        finer = await _measured(draft, probe, "float64")
        tolerance["float64"] = _in_float64(finer)
        precision = max(precision, _precision(finer), _LEAST_PRECISION_64)
    asked = replace(asked, tolerance=tolerance, precision=precision)
    return replace(draft, asked=asked, notes=(*draft.notes, *left))


async def _measured(draft: Draft, probe: Asks, dtype: str = "float32") -> list[Outcome]:
    """The reference on the cases in a dtype."""
    asked = draft.asked
    shapes = [dict(zip(draft.dims, shape, strict=True)) for shape in asked.shapes]
    trials = [Trial(sizes, dtype, scale) for sizes in shapes for scale in asked.scales]
    trials += [Trial(_telling_sizes(draft), dtype, values=kind) for kind in asked.judgeable]
    return [one for one in await probe.trials(draft, trials) if not one.error]


def _telling_sizes(draft: Draft) -> Sizes:
    return dict(zip(draft.dims, telling_shape(draft), strict=True))


async def _signed(draft: Draft, probe: Asks) -> Draft:
    """Inputs of one sign in the examples stay so where it matters: with both, results are not finite or far larger."""
    grown = {dim: span.near(4 * draft.sizes[dim]) for dim, span in draft.spans.items()}
    for name, one in draft.inputs.items():
        if one.values.sign:
            free = _valued(draft, name, replace(one.values, sign=0))
            held = await probe.trials(draft, [Trial(draft.sizes), Trial(grown)])
            loose = await probe.trials(free, [Trial(draft.sizes), Trial(grown)])
            if not any(_worse(with_both, was) for with_both, was in zip(loose, held, strict=True)):
                draft = free
    return draft


def _worse(with_both: Outcome, was: Outcome) -> bool:
    return bool(
        (with_both.error and not was.error)
        or (was.finite and not with_both.finite)
        or _size(with_both) > _FAR_LARGER * max(_size(was), 1e-30)
    )


def _size(outcome: Outcome) -> float:
    return max((max(abs(one.low), abs(one.high)) for one in outcome.results), default=0.0)


def _valued(draft: Draft, name: str, values: Values) -> Draft:
    return replace(draft, inputs={**draft.inputs, name: replace(draft.inputs[name], values=values)})


async def _parameters(draft: Draft, probe: Asks) -> Draft:
    """Numbers that were passed: those with which another result comes are the entry's parameters, the rest is fixed."""
    told: dict[str, Parameter] = {}
    for name, value in list(draft.fixed.items()):
        if not isinstance(value, float) or not math.isfinite(value):
            continue
        others = [value * _FACTOR**power for power in range(1, _POWERS + 1)] if value else list(_INSTEAD_OF_0)
        given = {key: kept for key, kept in draft.fixed.items() if key != name}
        freed = replace(draft, fixed=given, parameters={**draft.parameters, name: value})
        trials = [Trial(draft.sizes), *(Trial(draft.sizes, parameters={name: other}) for other in others)]
        was, *outcomes = await probe.trials(freed, trials)
        changes = {
            other: _change(was, now)
            for other, now in zip(others, outcomes, strict=True)
            if not now.error and now.finite and now.results != was.results
        }
        if changes:
            plain = (other for other, change in changes.items() if change >= _PLAIN)
            draft, told[name] = freed, next(plain, max(changes, key=changes.__getitem__))
    return replace(draft, asked=replace(draft.asked, told_parameters=told))


def _change(was: Outcome, now: Outcome) -> float:
    """By how much the extremes of the results differ, as a fraction of the results' size."""
    apart = [
        abs(one - other)
        for before, after in zip(was.results, now.results, strict=True)
        for one, other in ((before.low, after.low), (before.high, after.high))
    ]
    return max(apart, default=0.0) / max(_size(was), 1e-30)


async def _shapes(draft: Draft, probe: Asks) -> tuple[tuple[tuple[int, ...], ...], list[str]]:
    """The shapes of the sweep that work and do not take long, and what had to be left out."""
    wanted = dims.around(draft.sizes, draft.spans)
    kept, left = [], []
    for shape in wanted:
        sizes = dict(zip(draft.dims, shape, strict=True))
        (first,) = await probe.trials(draft, [Trial(sizes)])
        if not follows(draft, sizes, first):
            left.append(f"{_named(sizes)} is left out: {first.error or 'its results have other shapes'}")
        elif await _chance(draft, sizes, first, probe):
            left.append(
                f"{_named(sizes)} is left out: rounding decides what so few results are, and a verdict would be chance"
            )
        elif first.seconds > _SLOW_S:
            left.append(f"{_named(sizes)} is left out: one call takes {first.seconds:.1f} s")
        else:
            kept.append(shape)
    if not any(all(size > 1 for size in shape) for shape in kept):
        raise UsageError(f"{draft.cut.target.name}: no shape to judge it on is left; {'; '.join(left)}")
    return tuple(kept), left


async def _chance(draft: Draft, sizes: Sizes, first: Outcome, probe: Asks) -> bool:
    """Whether rounding the inputs costs more than an honest kernel could be allowed."""
    worst = first.precision
    if min(math.prod(one.shape) for one in first.results) < _SMALL_OUTPUT:
        again = await probe.trials(draft, [Trial(sizes, seed=seed) for seed in range(_SEEDS)])
        worst = max(worst, *(one.precision for one in again if not one.error))
    return worst > _CHANCE


async def _empty(draft: Draft, probe: Asks) -> tuple[tuple[int, ...], ...]:
    """A shape for each dim that may be 0, the others odd."""
    odd = {dim: span.near(3 * span.step) for dim, span in draft.spans.items()}
    trials = [{**odd, dim: 0} for dim, span in draft.spans.items() if span.empty]
    outcomes = await probe.trials(draft, [Trial(each, dtype) for each in trials for dtype in ("float32", *HALF)])
    good = [
        each
        for at, each in enumerate(trials)
        if all(follows(draft, each, one) for one in outcomes[3 * at : 3 * at + 3])
    ]
    return tuple(tuple(each.values()) for each in good if any(0 in shape for shape in _results(draft, each)))


def _results(draft: Draft, sizes: Sizes) -> list[tuple[int, ...]]:
    return [tuple(arithmetic.value(text, sizes) for text in one.shape) for one in draft.outputs.values()]


async def _scales(draft: Draft, probe: Asks) -> tuple[float, ...]:
    """1, a small one and a larger one, at which results can be judged by the tolerance of those at 1."""
    sizes = dict(zip(draft.dims, max(draft.asked.shapes, key=math.prod), strict=True))
    dtypes = (*_REL, *_exact(draft)[1:])
    usual = dict(zip(dtypes, await probe.trials(draft, [Trial(sizes, dtype) for dtype in dtypes]), strict=True))
    if any(one.error or not one.finite for one in usual.values()):
        raise UsageError(
            f"{draft.cut.target.name}: its result is not finite on values like those of the examples, in float16 or in "
            f"float32; give examples of smaller values"
        )
    kept = []
    for scale in (_SMALL, *_LARGER):
        outcomes = dict(
            zip(dtypes, await probe.trials(draft, [Trial(sizes, dtype, scale) for dtype in dtypes]), strict=True)
        )
        exact = all(_as_exact(outcomes[dtype], usual[dtype], dtype) for dtype in _exact(draft))
        if exact and all(one.finite and not one.error for one in outcomes.values()):
            kept.append(scale)
    return tuple(sorted([1.0, *(scale for scale in kept if scale < 1), *[scale for scale in kept if scale > 1][:1]]))


def _exact(draft: Draft) -> tuple[str, ...]:
    """The dtypes that are computed in without a rounding between: each has its own tolerance, which is measured."""
    return tuple(dtype for dtype in draft.dtypes if dtype not in HALF)


def _as_exact(outcome: Outcome, usual: Outcome, dtype: str) -> bool:
    """Whether rounding does not decide, and one tolerance can serve for both."""
    allowed = _WORSE * max(usual.error_abs, _EPS[dtype] * _size(usual))
    return not outcome.error and outcome.precision <= _CHANCE and outcome.error_abs <= allowed


async def _kinds(draft: Draft, probe: Asks) -> list[str]:
    """Kinds of telling values that can be judged by the tolerance of normal ones, and layouts where inputs have any.

    At many seeds, since a verdict draws its own: one at which an exponential runs away is one that refuses an honest
    kernel.
    """
    strided = any(one.strided for one in draft.inputs.values())
    wanted = [kind for kind in VALUES if strided or kind not in LAYOUTS]
    sizes = _telling_sizes(draft)
    for dtype in _exact(draft):
        draws = [Trial(sizes, dtype, values=kind, seed=seed) for kind in wanted for seed in range(_DRAWS)]
        usual, *outcomes = await probe.trials(draft, [Trial(sizes, dtype), *draws])
        chance = {draw.values for draw, one in zip(draws, outcomes, strict=True) if not _as_exact(one, usual, dtype)}
        wanted = [kind for kind in wanted if kind not in chance]
    return wanted


def _tolerance(draft: Draft, outcomes: Sequence[Outcome]) -> dict[str, tuple[float, float]]:
    """By dtype (rtol, atol).

    Half precision: one rounding of the result; where products follow one another, one more, of an intermediate result
    as large, since a matrix product takes its inputs in half precision.
    """
    off = max((one.error_abs for one in outcomes), default=0.0)
    middle = _middle(outcomes)
    atol = max(_MARGIN * off, _MARGIN * _EPS["float32"] * middle)
    more = 1 if draft.products > 1 else 0
    by_dtype = {dtype: (_REL[dtype] * (1 + more), _rounded(max(atol, more * _EPS[dtype] * middle))) for dtype in HALF}
    return {"float32": (_REL["float32"], _rounded(atol)), **by_dtype}


def _in_float64(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Some thousand units in the last place, in which the order of a sum does not show and one in float32 does."""
    off = max((one.error_abs for one in outcomes), default=0.0)
    return _REL_64, _rounded(max(_MARGIN * off, _REL_64 * _middle(outcomes)))


def _middle(outcomes: Sequence[Outcome]) -> float:
    """How large results are, in the middle."""
    usual = [max(seen.spread, abs(seen.mean)) for one in outcomes for seen in one.results if seen.floating]
    return (sorted(usual)[len(usual) // 2] if usual else 0.0) or 1.0


def _rounded(value: float) -> float:
    """Two digits, upwards: nobody measures a tolerance more finely."""
    digits = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / digits) * digits:.2g}")


def _precision(outcomes: Sequence[Outcome]) -> float:
    return float(max(_LEAST_PRECISION, math.ceil(_MARGIN / 2 * max((one.precision for one in outcomes), default=1.0))))


def _large(draft: Draft) -> tuple[tuple[int, ...], ...]:
    """Shapes to time: the example grown, once as it is and once with a last dim that is no power of two."""
    spans = {dim: span for dim, span in draft.spans.items()}
    big = dims.grown(draft.sizes, spans, lambda sizes: draft.elements(sizes), _GPU_ELEMENTS)
    last = draft.dims[-1]
    odd = {**big, last: spans[last].near(max(big[last] * 3 // 4, spans[last].low))}
    small = dims.grown(draft.sizes, spans, lambda sizes: draft.elements(sizes), _GPU_ELEMENTS >> 4)
    return tuple(dict.fromkeys(tuple(max(size, 1) for size in each.values()) for each in (odd, big, small)))


def _named(sizes: Sizes) -> str:
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
