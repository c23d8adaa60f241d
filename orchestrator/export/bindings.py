"""How a wrapper finds the sizes of an op's dims in the shapes of its arguments. Pure.

A dim that stands alone in a shape is read there; one that occurs only in a product with a known one is divided out.
The wrapper compares every shape with what follows from the sizes, so that a wrong guess is a call outside the envelope.
"""

from __future__ import annotations

import re

from orchestrator.errors import UsageError
from orchestrator.ops.spec import OpSpec

_PRODUCT = re.compile(r"\s*(\w+)\s*\*\s*(\w+)\s*")


def bindings(spec: OpSpec) -> dict[str, str]:
    """An expression for each dim, in an order in which each uses only the ones before."""
    places = [(f"{name}.shape[{at}]", size) for name, one in spec.inputs.items() for at, size in enumerate(one.shape)]
    found: dict[str, str] = {}
    for place, size in places:
        if size.strip() in spec.dims:
            found.setdefault(size.strip(), place)
    for place, size in places:
        if match := _PRODUCT.fullmatch(size):
            for dim, other in (match.groups(), reversed(match.groups())):
                if dim not in found and dim in spec.dims and other in found:
                    found[dim] = f"{place} // max({other}, 1)"
    if missing := [dim for dim in spec.dims if dim not in found]:
        raise UsageError(f"the sizes of {', '.join(missing)} do not follow from the inputs of {spec.name}: no wrapper")
    return found
