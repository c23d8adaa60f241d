"""What a draft's op.yaml says."""

from __future__ import annotations

import math
from typing import Any

from orchestrator import arithmetic
from orchestrator.convert.draft import Draft, Input, Output


def spec(draft: Draft) -> dict[str, Any]:
    """What op.yaml says."""
    entry = f"{draft.name}_triton({', '.join([*draft.inputs, *(f'{n}={v!r}' for n, v in draft.parameters.items())])})"
    asked = draft.asked
    shapes = [list(shape) for shape in dict.fromkeys((*asked.shapes, *asked.large[:2]))] or [list(draft.sizes.values())]
    content: dict[str, Any] = {
        "name": draft.name,
        "title": f"{'Gradients of ' if draft.forward else ''}{draft.cut.target.name} of {draft.cut.target.path.name}",
        "entry": entry,
        "dims": list(draft.dims),
        "inputs": {name: _input(one) for name, one in draft.inputs.items()},
        **({"parameters": dict(draft.parameters)} if draft.parameters else {}),
        "outputs": {name: _output(draft, name) for name in draft.outputs},
        "semantics": _semantics(draft),
        "constraints": list(_constraints(draft, entry)),
        "sweep": {
            "shapes": shapes,
            "dtypes": list(draft.dtypes),
            "scales": list(asked.scales),
            "quick": {
                dim: max([shape[at] for shape in asked.shapes] or [size]) or 1
                for at, (dim, size) in enumerate(draft.sizes.items())
            },
        },
        "tolerance": {dtype: {"rtol": rtol, "atol": atol} for dtype, (rtol, atol) in _tolerance(draft).items()},
        "precision": asked.precision,
        "bench": {
            "shapes": [list(shape) for shape in asked.large] or [[*[3] * len(draft.sizes)]],
            "dtypes": ["float32", "bfloat16"],
            "bytes": _bytes(draft),
            "flops": draft.flops,
            "flops_of": "reference",
        },
        "entry_checks": True,
    }
    sweep = content["sweep"]
    if asked.equivalent:
        content["equivalent_decoys"] = dict(asked.equivalent)
    if asked.telling or asked.told_parameters:
        sweep["telling"] = {
            "shape": list(telling_shape(draft)),
            "values": list(asked.telling),
            **({"parameters": dict(asked.told_parameters)} if asked.told_parameters else {}),
        }
    if asked.shapes:
        sweep["holdout"] = _holdout(draft)
    return content


def _input(one: Input) -> dict[str, Any]:
    said: dict[str, Any] = {"shape": list(one.shape)}
    if one.dtype:
        said["dtype"] = one.dtype
    if one.range is not None:
        said["range"] = list(one.range)
    if one.scaled:
        said["scaled"] = True
    if one.strided:
        said["strided"] = True
    return said


def _output(draft: Draft, name: str) -> dict[str, Any]:
    one = draft.outputs[name]
    said: dict[str, Any] = {"shape": list(draft.inputs[one.in_place].shape if one.in_place else one.shape)}
    said |= {"dtype": one.dtype} if one.dtype else {"dtype_of": one.in_place or draft.lead}
    return said | ({"in_place": one.in_place} if one.in_place else {})


def _tolerance(draft: Draft) -> dict[str, tuple[float, float]]:
    whole = {one.dtype: (0.0, 0.0) for one in draft.outputs.values() if "int" in one.dtype}
    return {**draft.asked.tolerance, **whole}


def telling_shape(draft: Draft) -> tuple[int, ...]:
    """Where the telling values stand: the largest of the odd shapes."""
    usual = draft.asked.shapes or (tuple(draft.sizes.values()),)
    several = [shape for shape in usual if min(shape) > 1] or list(usual)
    return max(several, key=lambda shape: (sum(size % 2 for size in shape), math.prod(shape)))


def _holdout(draft: Draft) -> dict[str, Any]:
    small = {dim: [shape[at] for shape in draft.asked.shapes] for at, dim in enumerate(draft.dims)}
    ranges = {}
    for dim, span in draft.spans.items():
        low = span.near(max(span.low, 2 * span.step))
        high = max(span.near(max(small[dim])), low)
        ranges[dim] = [low, high, span.step] if span.step > 1 else [low, high]
    return {"count": 3, "ranges": ranges, "always": [list(shape) for shape in draft.asked.empty]}


def _bytes(draft: Draft) -> str:
    """Each input read once and each output written once; of a fixed dtype by its own size."""
    tensors: list[Input | Output] = [*draft.inputs.values(), *draft.outputs.values()]
    counted = [(arithmetic.count(one.shape), one.dtype) for one in tensors]
    own = [text for text, dtype in counted if not dtype]
    other = [f"{_itemsize(dtype)} * ({text})" for text, dtype in counted if dtype]
    return " + ".join([f"({' + '.join(own)}) * itemsize", *other] if own else other)


def _itemsize(dtype: str) -> int:
    return 8 if "64" in dtype else 2 if "16" in dtype else 1 if dtype == "int8" else 4


def _semantics(draft: Draft) -> str:
    returned = ", ".join(draft.outputs)
    what = f"{draft.cut.target.name}" + (" in eval mode" if draft.built and draft.built.module else "")
    lines = [f"{returned} = {what}, as ref.py has it: the original code, on inputs widened to float32; rounded once."]
    if draft.forward:
        of = ", ".join(
            f"{name} is the gradient of {one.key}" for name, one in draft.inputs.items() if one.kind == "gradient"
        )
        lines = [
            f"{returned} = the gradients by {', '.join(draft.of.inputs)} of {what}, as autograd has them of the",
            f"original code in ref.py, in float32, or in float64 for float64 inputs; rounded once. {of}.",
        ]
    if state := {one.key: name for name, one in draft.inputs.items() if one.kind == "state"}:
        lines.append(
            "Its own tensors are inputs: " + ", ".join(f"{key} is {name}" for key, name in state.items()) + "."
        )
    if draft.fixed:
        lines.append("Fixed: " + ", ".join(f"{name} = {value!r}" for name, value in draft.fixed.items()) + ".")
    if masks := [name for name, one in draft.inputs.items() if one.boolean]:
        lines.append(f"{', '.join(masks)}: 0 is False, 1 is True.")
    return "\n".join(lines)


def _constraints(draft: Draft, entry: str) -> list[str]:
    name = draft.name
    written = sorted({one.in_place for one in draft.outputs.values() if one.in_place})
    spans = [f"{dim} is {_said(draft, dim)}" for dim in draft.dims]
    return [
        _arithmetic(draft),
        "All arithmetic happens inside kernels; several may be launched one after the other. On the host only "
        "allocate, read shapes and strides, and launch; no torch computation.",
        f"One file, {name}_triton.py, exporting {entry}.",
        f"Do not write to the inputs{' but ' + ', '.join(written) if written else ''}; return new contiguous tensors"
        f"{' for the others' if written else ''}.",
        "; ".join(spans) + ".",
        f"The docstring of {name}_triton states what it assumes: shapes, dtypes, device, contiguity. It checks this at "
        "its entry, by shape, dtype, device and is_contiguous() alone, and raises ValueError or TypeError that says "
        "what was given.",
    ]


def _arithmetic(draft: Draft) -> str:
    ieee = 'For float32 inputs give tl.dot input_precision="ieee".'
    if draft.forward:
        return (
            "Compute in float32 for half precision and float32, and in float64 for float64, which "
            "torch.autograd.gradcheck asks for; keep intermediate results so too. A float argument of a kernel is a "
            f"float32 on a GPU; pass numbers as tl.constexpr. {ieee}"
        )
    return f"Compute in float32, whatever the dtype of the inputs, and keep intermediate results in float32. {ieee}"


def _said(draft: Draft, dim: str) -> str:
    span = draft.spans.get(dim)
    if span is None or not span.varies:
        return str(draft.sizes[dim])
    step = f" in steps of {span.step}" if span.step > 1 else ""
    return f"from {0 if span.empty else span.low}{step}"
