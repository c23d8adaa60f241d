"""A draft's reference.py: the code that was cut out, and how the op calls it."""

from __future__ import annotations

from orchestrator import resources
from orchestrator.convert.draft import Draft


def reference(draft: Draft) -> str:
    """reference.py; that of gradients holds the forward op's too, and goes back through it."""
    environment = resources.environment(resources.templates() / "convert", python=repr)
    shaped_inputs, backward = _shaped(draft), draft if draft.forward else None
    draft = draft.forward or draft
    outputs = [_result(draft, name) for name in draft.outputs]
    text = environment.get_template("reference.py.j2").render(
        draft=draft,
        arguments=", ".join([*draft.inputs, *(f"{n}={v!r}" for n, v in draft.parameters.items())]),
        construct=_construct(draft),
        from_shapes=_from_shapes(draft),
        call=_call(draft),
        in_place={one.in_place for one in draft.outputs.values()},
        outputs=outputs,
        conversions=dict(zip(outputs, (_conversion(draft, name) for name in draft.outputs), strict=True)),
        shaped_inputs=shaped_inputs,
        backward=backward,
        imports=_imports(draft),
    )
    return text.rstrip() + "\n"


def _imports(draft: Draft) -> list[str]:
    """What the code imports and what the op's own part needs, plain imports first."""
    built = draft.built
    own = [
        "import torch",
        *(["import functools"] if built else []),
        *(["import copy"] if built and built.opaque else []),
    ]
    return sorted({*own, *draft.cut.imports}, key=lambda line: (line.startswith("from"), line))


def _result(draft: Draft, name: str) -> str:
    """A name for the result that hides no input's."""
    return f"{name}_" if name in draft.inputs else name


def _conversion(draft: Draft, name: str) -> str:
    one = draft.outputs[name]
    if "int" in one.dtype:
        return ""
    if one.dtype == "float32":
        return ".to(wide)"  # in float64 where the inputs are: how exact a result is, is judged by that
    return f".to(torch.{one.dtype})" if one.dtype else ".to(dtype)"


def _construct(draft: Draft) -> str:
    built = draft.built
    if built is None:
        return ""
    parts = []
    for name, value in built.literal.items():
        parts.append(f"{name}={draft.ties.get(name, value)}")
    for name, place in built.opaque.items():
        sizes = [f"{path.partition('.')[2]}={dim}" for path, dim in draft.ties.items() if path.startswith(f"{name}.")]
        parts.append(f"{name}=_with({', '.join([f'given[{place}]', *sizes])})")
    return ", ".join(parts)


def _from_shapes(draft: Draft) -> str:
    """The dims that the constructor is given, from the inputs' shapes."""
    dims = list(dict.fromkeys(draft.ties.values()))
    if not dims:
        return ""
    places = []
    for dim in dims:
        name, at = next((n, one.shape.index(dim)) for n, one in draft.inputs.items() if dim in one.shape)
        places.append(f"{name}.shape[{at}]")
    return f"{', '.join(dims)} = {', '.join(places)}"


def _call(draft: Draft) -> str:
    target = draft.cut.target
    arguments = {one.key: name for name, one in draft.inputs.items() if one.kind == "argument"}
    arguments |= {name: repr(value) for name, value in draft.fixed.items()} | {name: name for name in draft.parameters}
    passed = ", ".join(f"{key}={value}" for key, value in arguments.items())
    if draft.built is None:
        return f"{target.name}({passed})"
    sizes = list(dict.fromkeys(draft.ties.values()))
    made = f"_built({', '.join([*sizes, 'wide', f'{draft.lead}.device'])})"
    if not draft.built.module:
        return f"{made}.{target.method or '__call__'}({passed})"
    prefix = "inner." if target.method else ""
    state = ", ".join(f'"{prefix}{one.key}": {name}' for name, one in draft.inputs.items() if one.kind == "state")
    by_name = ", ".join(f'"{key}": {value}' for key, value in arguments.items())
    return f"torch.func.functional_call({made}, {{{state}}}, (), {{{by_name}}})"


def _shaped(draft: Draft) -> list[str]:
    """Lines that make an input's values what they should be, in the same place in memory."""
    lines = []
    for name, one in draft.inputs.items():
        values = one.values
        if values.plain or one.range is not None:
            continue
        steps = ""
        if values.fan:
            terms = " * ".join(f'inputs["{name}"].shape[{at}]' for at in range(1, len(one.shape)))
            steps += f".mul_({values.spread:.3g} / max({terms}, 1) ** 0.5)"
        elif values.spread != 1:
            steps += f".mul_({values.spread:.3g})"
        if values.center:
            steps += f".add_({values.center:.3g})"
        steps += {1: ".abs_()", -1: ".abs_().neg_()", 0: ""}[values.sign]
        lines.append(f'inputs["{name}"]{steps}')
    return lines
