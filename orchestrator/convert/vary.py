"""Which sizes the code takes, found by running it: dims told apart, their spans, the results' shapes.

Each step asks the probe and returns a draft that says more. A size that raises, or at which the results' shapes no
longer follow the dims, is not a size of the op; what cannot be varied is noted for the person.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator import arithmetic
from orchestrator.convert import dims
from orchestrator.convert.asks import Asks
from orchestrator.convert.constructor import constructed
from orchestrator.convert.dims import Axis, Sizes, Span
from orchestrator.convert.draft import Draft, Input, Output
from orchestrator.errors import UsageError
from orchestrator.probed import Called, Examined, Outcome, Trial

_FACTORS = (2, 3)
_LONG_S = 0.5  # of one run; larger sizes are not tried then


async def shaped(draft: Draft, found: Examined, probe: Asks) -> Draft:
    """The draft with its dims: each with the axes that have it, and the sizes that it may have.

    Raises UsageError where the op's own form of the example does not run.
    """
    draft = await _runs(draft, probe)
    parts = await _parts(draft, found, probe)
    draft = _with_dims(draft, found, parts)
    draft = await constructed(draft, found, probe)
    draft = await _indices(draft, probe)
    return await _spans(draft, probe)


async def _runs(draft: Draft, probe: Asks) -> Draft:
    """As it was called, nothing varied: the code must run as an op at all, in float64 too."""
    (outcome,) = await probe.trials(draft, [Trial(draft.sizes)])
    if outcome.error and not draft.default_dtype:
        return await _runs(replace(draft, default_dtype=True), probe)
    if outcome.error:
        raise UsageError(f"{draft.cut.target.name} does not run as an op, on the example's own sizes: {outcome.error}")
    return replace(draft, outputs=_literal_outputs(draft, outcome))


def _literal_outputs(draft: Draft, outcome: Outcome) -> dict[str, Output]:
    pairs = zip(draft.outputs.items(), outcome.results, strict=True)
    return {name: replace(one, shape=tuple(map(str, seen.shape))) for (name, one), seen in pairs}


# --- which axes share a dim


async def _parts(draft: Draft, found: Examined, probe: Asks) -> list[tuple[Axis, ...]]:
    """Axes of arguments that have one dim. Equal sizes are one dim, unless a part of them can be varied by itself."""
    shapes = [{name: one.shape for name, one in call.tensors.items()} for call in found.calls]
    parts: list[tuple[Axis, ...]] = []
    for group in dims.groups(shapes):
        rest = group
        if len(group) > 1 and found.calls[0].tensors[group[0].tensor].shape[group[0].at] > 1:
            for part in _candidates(group):
                if set(part) < set(rest) and await _alone(draft, found, part, probe):
                    parts.append(part)
                    rest = tuple(axis for axis in rest if axis not in part)
        parts.append(rest)
    first = [axis for axes in dims.groups(shapes) for axis in axes]
    return sorted(parts, key=lambda axes: min(first.index(axis) for axis in axes))


def _candidates(group: tuple[Axis, ...]) -> Iterable[tuple[Axis, ...]]:
    """Parts of a group that may be dims of their own: single axes, those in one place, pairs."""
    yield from ((axis,) for axis in group)
    for place in sorted({axis.at for axis in group}):
        together = tuple(axis for axis in group if axis.at == place)
        if 1 < len(together) < len(group):
            yield together
    if len(group) == 4:
        yield from itertools.combinations(group, 2)


async def _alone(draft: Draft, found: Examined, part: tuple[Axis, ...], probe: Asks) -> bool:
    """Whether it works to vary these axes and nothing else."""
    trial = _with_dims(draft, found, [part])
    name, size = next(iter(trial.sizes.items()))
    less = size // next(step for step in dims.divisors(size)[1:])  # more than is used may go unseen, less does not
    sizes = [{**trial.sizes, name: each} for each in (less, *(size * factor for factor in _FACTORS))]
    return not any(one.error for one in await probe.trials(trial, [_run(each) for each in sizes]))


def _with_dims(draft: Draft, found: Examined, parts: Sequence[tuple[Axis, ...]]) -> Draft:
    """The draft whose arguments have these dims; all their other axes are as the example has them."""
    call = found.calls[0]
    ranks = {name: len(one.shape) for name, one in call.tensors.items()}
    names = dims.names(parts, ranks, [*draft.inputs, *draft.fixed, *draft.parameters])
    sizes: Sizes = {}
    of: dict[Axis, str] = {}
    for name, axes in zip(names, parts, strict=True):
        sizes[name] = call.tensors[axes[0].tensor].shape[axes[0].at]
        of |= dict.fromkeys(axes, name)
    inputs = {name: _renamed(one, call, of) for name, one in draft.inputs.items()}
    return replace(draft, inputs=inputs, sizes=sizes)


def _renamed(one: Input, call: Called, of: dict[Axis, str]) -> Input:
    if one.kind != "argument":
        return one
    shape = call.tensors[one.key].shape
    return replace(one, shape=tuple(of.get(Axis(one.key, at), str(size)) for at, size in enumerate(shape)))


# --- integers that are places


async def _indices(draft: Draft, probe: Asks) -> Draft:
    """Integers that are places along a dim: those for which the dim's size is one too many."""
    for name, one in draft.inputs.items():
        if one.range is None or one.boolean or int(one.range[0]) < 0:
            continue
        for dim, size in sorted(draft.sizes.items(), key=lambda item: item[1]):
            if size < int(one.range[1]):
                continue
            inside, outside = (_ranged(draft, name, (size + more - 1, size + more)) for more in (0, 1))
            (fine,) = await probe.trials(inside, [_run(draft.sizes)])
            (fails,) = await probe.trials(outside, [_run(draft.sizes)])
            if not fine.error and fails.error:
                draft = _ranged(draft, name, (0, dim))
                break
    return draft


def _ranged(draft: Draft, name: str, bounds: tuple[int | str, int | str]) -> Draft:
    return replace(draft, inputs={**draft.inputs, name: replace(draft.inputs[name], range=bounds)})


# --- which sizes a dim may have


async def _spans(draft: Draft, probe: Asks) -> Draft:
    """The span of each dim, and the results' shapes as arithmetic over the dims."""
    steps = {dim: await _step(draft, dim, probe) for dim in draft.sizes}
    if fixed := [dim for dim, step in steps.items() if step is None]:
        draft = _without(draft, fixed)
    known = {dim: step for dim, step in steps.items() if step is not None}
    if not known:
        raise UsageError(
            f"{draft.cut.target.name}: no size of the example can be varied, and a kernel for one size cannot be told "
            f"from one that remembers its answers; convert a part whose sizes are free"
        )
    draft = await _result_shapes(draft, known, probe)
    spans = {dim: await _span(draft, dim, step, probe) for dim, step in known.items()}
    order = sorted(draft.sizes, key=lambda dim: spans[dim].step.bit_count() == 1 and spans[dim].high <= spans[dim].low)
    return replace(draft, spans=spans, sizes={dim: draft.sizes[dim] for dim in order})


async def _step(draft: Draft, dim: str, probe: Asks) -> int | None:
    """The smallest step by which the dim can go; None where it cannot."""
    for step in dims.divisors(draft.sizes[dim]):
        tried = [_run({**draft.sizes, dim: size}) for size in dims.probes_of_step(step)]
        below = [one for one in tried if one.dims[dim] <= draft.sizes[dim]]
        outcomes = await probe.trials(draft, tried)
        if not any(one.error for one in outcomes):
            return step
        if len(below) > 1 and not any(one.error for one in outcomes[: len(below)]):
            return step  # it has a bound above, which its span will find
    return None


def _without(draft: Draft, fixed: Sequence[str]) -> Draft:
    """These dims are sizes that stay."""
    said = {dim: str(draft.sizes[dim]) for dim in fixed}

    def plain(shape: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(" ".join(said.get(word, word) for word in size.split()) for size in shape)

    inputs = {name: replace(one, shape=plain(one.shape)) for name, one in draft.inputs.items()}
    inputs = {
        name: one
        if one.range is None
        else replace(one, range=(one.range[0], said.get(str(one.range[1]), one.range[1])))
        for name, one in inputs.items()
    }
    notes = tuple(f"{dim} = {draft.sizes[dim]} cannot be varied: other sizes raise" for dim in fixed)
    sizes = {dim: size for dim, size in draft.sizes.items() if dim not in fixed}
    ties = {path: dim for path, dim in draft.ties.items() if dim not in fixed}
    inputs = {name: replace(one, range=_whole(one.range)) for name, one in inputs.items()}
    return replace(draft, inputs=inputs, sizes=sizes, ties=ties, notes=(*draft.notes, *notes))


def _whole(bounds: tuple[int | str, int | str] | None) -> tuple[int | str, int | str] | None:
    return None if bounds is None else tuple(int(b) if str(b).isdigit() else b for b in bounds)  # type: ignore[return-value]


async def _result_shapes(draft: Draft, steps: dict[str, int], probe: Asks) -> Draft:
    """Each result's sizes in the dims, from runs at sizes that tell the dims apart."""
    assignments = _telling_apart(draft, steps)
    outcomes = await probe.trials(draft, [_run(each) for each in assignments])
    ran = [(each, one) for each, one in zip(assignments, outcomes, strict=True) if not one.error]
    if len(ran) < 2:
        raise UsageError(
            f"{draft.cut.target.name} takes no other sizes than the example's when several change at once: "
            f"{next(one.error for one in outcomes if one.error)}"
        )
    outputs = {}
    for at, (name, output) in enumerate(draft.outputs.items()):
        axes = zip(*(one.results[at].shape for _, one in ran), strict=True)
        said = [dims.expression(sizes, [each for each, _ in ran]) for sizes in axes]
        if None in said:
            raise UsageError(
                f"{draft.cut.target.name}: the shape of result {at} does not follow from the inputs' sizes by simple "
                f"arithmetic ({', '.join(str(one.results[at].shape) for _, one in ran[:3])})"
            )
        outputs[name] = replace(output, shape=tuple(str(text) for text in said))
    return replace(draft, outputs=outputs)


def _telling_apart(draft: Draft, steps: dict[str, int]) -> list[Sizes]:
    """Sizes of all dims at once, each another prime times its step, in several orders; the example's own first."""
    primes = (3, 5, 7, 11, 13, 17)
    turned = [
        {dim: steps[dim] * primes[(at + by) % len(primes)] for at, dim in enumerate(draft.sizes)} for by in range(4)
    ]
    single = [{**draft.sizes, dim: steps[dim] * 5} for dim in draft.sizes]
    return [draft.sizes, *turned, *single]


async def _span(draft: Draft, dim: str, step: int, probe: Asks) -> Span:
    """The least and the largest size that work, and whether 0 does; the results' shapes must follow."""
    size = draft.sizes[dim]
    lows = [each for each in (step, 2 * step, size) if each <= size]
    tried = [0, *lows, *dims.probes_of_step(step)]
    outcomes = await probe.trials(draft, [_run({**draft.sizes, dim: each}) for each in tried])
    fine = {each for each, one in zip(tried, outcomes, strict=True) if follows(draft, {**draft.sizes, dim: each}, one)}
    low = next((each for each in lows if each in fine), size)
    reached = max([size, *itertools.takewhile(lambda each: each in fine, sorted(set(tried) - {0, *lows}))])
    return Span(low, await _highest(draft, dim, step, reached, probe), step, 0 in fine)


async def _highest(draft: Draft, dim: str, step: int, reached: int, probe: Asks) -> int:
    """The largest size of a ladder up to which each works and takes no long time."""
    for each in dims.ladder(draft.sizes[dim], step, draft.elements(draft.sizes)):
        sizes = {**draft.sizes, dim: each}
        (outcome,) = await probe.trials(draft, [_run(sizes)])
        if not follows(draft, sizes, outcome):
            break
        reached = max(reached, each)
        if outcome.seconds > _LONG_S:
            break
    return reached


def _run(sizes: Sizes) -> Trial:
    """Whether it runs; not how exact it is."""
    return Trial(sizes, figures=False)


def follows(draft: Draft, sizes: Sizes, outcome: Outcome) -> bool:
    """Whether it ran, and its results have the shapes that the draft says."""
    if outcome.error:
        return False
    values = {dim: sizes[dim] for dim in sizes}
    said = [tuple(arithmetic.value(text, values) for text in one.shape) for one in draft.outputs.values()]
    return said == [one.shape for one in outcome.results]
