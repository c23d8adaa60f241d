"""Gradients of a converted op: how its backward pass comes about, as a module beside it and, where asked for, as an op.

Owns what the backward op takes and gives, and what autograd.py says. Whether the gradients are right is the probe's to
find out; there no kernel exists yet, and references stand in the kernels' places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator import resources
from orchestrator.convert.dims import Sizes
from orchestrator.convert.draft import GRADIENT_DTYPES, Asked, Draft, Input, Output
from orchestrator.errors import UsageError
from orchestrator.probed import Differentiated

MODULE = "autograd.py"


class Way(StrEnum):
    """How the gradients are computed."""

    KERNEL = "kernel"  # a second op, with a kernel of its own
    CHECKPOINT = "checkpoint"  # the reference runs again, and autograd goes back through it
    COMPILE = "compile"  # the same, compiled by torch.compile


@dataclass(frozen=True)
class Backward:
    """The way, the module that ties forward and backward together, and the backward op where there is one."""

    way: Way
    module: str
    op: Draft | None = None


def way(text: str) -> Way:
    """The way of that name. Raises UsageError."""
    if text not in list(Way):
        raise UsageError(f"--backward {text}: there are {', '.join(Way)}")
    return Way(text)


def refuse_in_place(forward: Draft) -> None:
    """What is written into an input is not there any more when gradients are computed from it. Raises UsageError."""
    if written := sorted({one.in_place for one in forward.outputs.values() if one.in_place}):
        raise UsageError(
            f"{forward.cut.target.name} writes into {', '.join(written)}, and gradients are computed from what was "
            f"there before: return a new tensor, or convert it without --backward"
        )


def draft(forward: Draft, found: Differentiated) -> Draft:
    """The op whose results are the gradients; its cases are not chosen yet."""
    given = gradient_names(forward, found)
    inputs = {
        name: Input(forward.outputs[of].shape, "gradient", of, forward.outputs[of].dtype) for of, name in given.items()
    }
    inputs |= forward.inputs
    taken = set(inputs)
    results = {_free(f"d{name}", taken): Output(forward.inputs[name].shape) for name in found.inputs}
    name = f"{forward.name}_backward"
    products = 2 * forward.products  # the gradient of a matrix product is one by each of its factors
    asked = Asked(told_parameters=forward.asked.told_parameters, tolerance=dict.fromkeys(GRADIENT_DTYPES, (1e-2, 1e-2)))
    return replace(
        forward, name=name, inputs=inputs, outputs=results, asked=asked, forward=forward, of=found, products=products
    )


def gradient_names(forward: Draft, found: Differentiated) -> dict[str, str]:
    """For each result that has a gradient, the name of the input that it is."""
    taken = set(forward.inputs)
    return {of: _free(f"d{of}", taken) for of in found.results}


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def module(chosen: Way, forward: Draft, found: Differentiated) -> str:
    """autograd.py."""
    order = list(forward.outputs)
    return _rendered(
        "autograd.py.j2",
        way=chosen.value,
        draft=forward,
        found=found,
        gradients=list(gradient_names(forward, found).values()),
        places=[order.index(name) for name in found.results],
        integers=[at for at, name in enumerate(order) if name not in found.results],
    )


def record(made: Backward, forward: Draft) -> str:
    """What CONVERTED.md says of it: how it is used, and what the way costs."""
    return _rendered("gradients.md.j2", way=made.way.value, draft=forward)


def decoys(backward: Draft) -> str:
    """decoys.py of the backward op: the fault for which float64 is among its dtypes."""
    return _rendered("gradient_decoys.py.j2", draft=backward)


def smallest(forward: Draft) -> Sizes:
    """Sizes at which finite differences are quickly taken, no two dims alike where that can be."""
    near = {dim: span.near((3 + at) * span.step) for at, (dim, span) in enumerate(forward.spans.items())}
    return {**forward.sizes, **near}


def _rendered(template: str, **facts: object) -> str:
    return (
        resources.environment(resources.templates() / "convert", python=repr)
        .get_template(template)
        .render(**facts)
        .rstrip()
        + "\n"
    )
