"""Sizes that a constructor is given, tied to dims; its object's tensors, whose shapes follow from them."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.convert import dims
from orchestrator.convert.asks import Asks
from orchestrator.convert.draft import Draft, Input
from orchestrator.probed import Examined

_FACTORS = (2, 3)


async def constructed(draft: Draft, found: Examined, probe: Asks) -> Draft:
    """Sizes of the constructor made dims: those that an argument has too, and those that its own tensors have alone."""
    built = found.built
    if built is None or not built.sizes:
        return _state_sizes(draft, found)
    ties = {path: name for path, size in built.sizes.items() for name, other in draft.sizes.items() if size == other}
    free = [path for path in built.sizes if path not in ties]
    shapes = await probe.built([{path: 2 * built.sizes[path]} for path in free])
    before = {name: list(one.seen.shape) for name, one in built.state.items()}
    inputs = [one.key for one in draft.inputs.values() if one.kind == "state"]
    sizes = dict(draft.sizes)
    for path, after in zip(free, shapes, strict=True):
        if after is not None and any(after.get(key) != before[key] for key in inputs):
            taken = [*sizes, *draft.inputs, *draft.fixed]
            ties[path] = dims.names([()], {}, taken)[0]
            sizes = {ties[path]: built.sizes[path], **sizes}
    return await _tied(replace(draft, sizes=sizes), found, ties, probe)


async def _tied(draft: Draft, found: Examined, ties: dict[str, str], probe: Asks) -> Draft:
    """State shapes as arithmetic over the dims, read off objects that were constructed with other sizes."""
    assert found.built is not None
    among = list(dict.fromkeys(ties.values()))
    asked = [
        {dim: draft.sizes[dim] * (factor if dim == each else 1) for dim in among}
        for each in among
        for factor in _FACTORS
    ]
    asked = [{dim: draft.sizes[dim] for dim in among}, *asked, {dim: draft.sizes[dim] * 2 for dim in among}]
    made = await probe.built([{path: sizes[dim] for path, dim in ties.items()} for sizes in asked])
    works = [(sizes, shapes) for sizes, shapes in zip(asked, made, strict=True) if shapes is not None]
    if not among or len(works) < 3:
        return _state_sizes(draft, found)
    inputs = dict(draft.inputs)
    for name, one in draft.inputs.items():
        if one.kind == "state":
            axes = zip(*(shapes[one.key] for _, shapes in works), strict=True)
            said = [dims.expression(sizes, [at for at, _ in works]) for sizes in axes]
            if None in said:
                return _state_sizes(draft, found)
            inputs[name] = replace(one, shape=tuple(str(text) for text in said))
    kept = {path: dim for path, dim in ties.items() if any(dim in one.shape for one in inputs.values())}
    sizes = {dim: size for dim, size in draft.sizes.items() if any(_mentions(one, dim) for one in inputs.values())}
    return replace(draft, inputs=inputs, ties=kept, sizes=sizes)


def _mentions(one: Input, dim: str) -> bool:
    return any(dim in size.replace("(", " ").replace(")", " ").split() for size in one.shape)


def _state_sizes(draft: Draft, found: Examined) -> Draft:
    """The object's own tensors as they are; nothing was tied."""
    built = found.built
    if built is None:
        return draft
    inputs = {
        name: replace(one, shape=tuple(map(str, built.state[one.key].seen.shape))) if one.kind == "state" else one
        for name, one in draft.inputs.items()
    }
    sizes = {dim: size for dim, size in draft.sizes.items() if any(dim in one.shape for one in inputs.values())}
    return replace(draft, inputs=inputs, ties={}, sizes=sizes)
