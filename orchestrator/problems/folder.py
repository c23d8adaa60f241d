"""An op's two files from the facts about a problem. Pure: text in, text out.

Shapes are those given and small ones that break kernels. Tolerances are by dtype, with room for what the model itself
loses in float32; half precision is asked where arithmetic in it would show. NaN and infinities come out as the model
has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import yaml

from orchestrator import arithmetic, resources
from orchestrator.problems.facts import Array, Facts
from orchestrator.problems.source import as_function, forward

SCALES = (0.01, 1.0, 8.0)
_ROOM_BYTES = 900 << 20  # of a case's inputs, or of its results, that fit into the judge's usual buffers
_HALF = {"float16": 1e-3, "bfloat16": 8e-3}  # one rounding of the result (2^-11, 2^-8), doubled
_KINDS = ("columns", "offset", "zero_row", "nan", "inf")
_HEADROOM = 8  # times the model's own float32 error on small shapes: larger ones sum more


def op_files(name: str, facts: Facts, source: str, origin: str) -> dict[str, bytes]:
    """op.yaml and reference.py. `origin` says where the problem came from."""
    head = f"# Made from {origin}. What is computed is in reference.py.\n"
    if facts.flops == "0":
        head += (
            "# How many floating-point operations it makes is not known (flops: 0): its ceiling is that of memory.\n"
        )
    text = yaml.safe_dump(spec(name, facts, source), sort_keys=False, width=130, allow_unicode=True)
    return {"op.yaml": (head + text).encode(), "reference.py": reference(name, facts, source, origin).encode()}


def reference(name: str, facts: Facts, source: str, origin: str) -> str:
    """The text of reference.py: the problem as a function of its sizes, and the op as a call of its Model."""
    template = resources.environment(resources.templates()).get_template("problem_reference.py.j2")
    return template.render(name=name, facts=facts, problem=as_function(source, list(facts.dims)), origin=origin)


def spec(name: str, facts: Facts, source: str) -> dict[str, Any]:
    """What op.yaml says."""
    names = ", ".join(one.name for one in facts.inputs)
    entry = f"{name}_triton({names})"
    given = list(facts.dims.values())
    return {
        "name": name,
        "title": facts.title or name,
        "entry": entry,
        "dims": list(facts.dims),
        "inputs": {one.name: _input(one) for one in facts.inputs},
        "outputs": {one.name: _output(one, facts) for one in facts.outputs},
        "semantics": f"What Model.forward computes, whole, with its parameters as arguments:\n\n{forward(source)}",
        "constraints": [
            "Compute in float32, whatever the dtype of the inputs, and round once, to that of the result.",
            "All arithmetic happens inside kernels. On the host only allocate, read shapes and strides, and launch.",
            f"One file, {name}_triton.py, exporting {entry}.",
            "All inputs are contiguous; do not write to them; return new contiguous tensors.",
            "NaN and infinities come out as the reference has them. Every size from 1 upwards occurs.",
        ],
        "sweep": _sweep(facts, given),
        "tolerance": tolerances(facts),
        "precision": 16.0,
        "bench": {
            "shapes": [list(shape) for shape in facts.bench],
            "dtypes": ["float32"],
            "bytes": f"({_elements((*facts.inputs, *facts.outputs))}) * itemsize",
            "flops": facts.flops,
            "flops_of": "reference",
        },
    }


def _input(one: Array) -> dict[str, Any]:
    said: dict[str, Any] = {"shape": list(one.shape)}
    if one.range is not None:
        return said | {"dtype": one.dtype, "range": [int(end) if end.isdigit() else end for end in one.range]}
    return said if one.parameter else said | {"scaled": True}


def _output(one: Array, facts: Facts) -> dict[str, Any]:
    first = next(array.name for array in facts.inputs if array.range is None)
    return {"shape": list(one.shape), **({"dtype_of": first} if one.floating else {"dtype": one.dtype})}


def _sweep(facts: Facts, given: list[int]) -> dict[str, Any]:
    fits = max(_most_elements(facts, facts.inputs), _most_elements(facts, facts.outputs)) * 4 <= _ROOM_BYTES
    shapes = [list(shape) for shape in facts.shapes] + ([given] if fits else [])
    bounds = {name: max(shape[at] for shape in facts.shapes) for at, name in enumerate(facts.dims)}
    ranges = {name: list(bounds_) for name, bounds_ in facts.ranges.items()}
    said: dict[str, Any] = {
        "shapes": shapes,
        "dtypes": list(facts.dtypes),
        "scales": list(SCALES),
        "quick": bounds,
        "telling": {"shape": list(facts.telling), "values": list(_KINDS)},
        "holdout": {"count": 3, "ranges": ranges} if ranges else {"count": 0},
    }
    if not fits and facts.along:
        said["large"] = {"shape": given, "dtype": "float32", "along": facts.along}
    return said


def _elements(arrays: Iterable[Array]) -> str:
    return " + ".join(arithmetic.count(one.shape) for one in arrays)


def _most_elements(facts: Facts, arrays: tuple[Array, ...]) -> int:
    return arithmetic.value(_elements(arrays) or "0", facts.dims)


def tolerances(facts: Facts) -> dict[str, dict[str, float]]:
    """|got - want| <= atol + rtol * |want|, by dtype."""
    integers = {one.dtype for one in facts.outputs if not one.floating}
    atol = max(1e-6, _HEADROOM * facts.error)
    atol = float(f"{atol:.1e}") if math.isfinite(atol) else 1e-3
    return {
        "float32": {"rtol": 1e-5, "atol": atol},
        **{dtype: {"rtol": _HALF[dtype], "atol": max(1e-5, atol)} for dtype in facts.dtypes if dtype in _HALF},
        **{dtype: {"rtol": 0.0, "atol": 0.0} for dtype in sorted(integers)},
    }
