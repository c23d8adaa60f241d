"""From what the examples show to a first draft, of the examples' own sizes."""

from __future__ import annotations

import keyword
import math
from dataclasses import replace

from orchestrator.convert.draft import Draft, Input, Output, Values
from orchestrator.convert.examples import Examples
from orchestrator.convert.extract import Cut
from orchestrator.errors import UsageError
from orchestrator.probed import Called, Examined, Seen

_USUAL = (0.5, 2.0)  # spreads that standard normal values stand for
_FEW = 32  # values of which a sign says nothing


def draft(cut: Cut, found: Examined, name: str) -> Draft:
    """The op of the first example, its sizes fixed. Raises UsageError."""
    call = found.calls[0]
    where = f"{cut.target.path.name}:{cut.target.name}"
    _alike(found, where)
    inputs = {
        _identifier(key, set()): _argument(key, [each.tensors[key] for each in found.calls]) for key in call.tensors
    }
    lead = next((one.dtype for one in call.tensors.values() if one.floating), None)
    if lead is None:
        raise UsageError(f"{where}: none of its tensors holds floats; an op needs one that does")
    if not any(one.shape for one in call.tensors.values()):
        raise UsageError(
            f"{where}: none of its tensors has an axis, so that there is no size to vary: pass one that has"
        )
    for key, state in (found.built.state if found.built else {}).items():
        if state.seen.floating and not state.constant:
            inputs[_identifier(key, set(inputs))] = Input((), "state", key, values=_values(state.seen, weights=True))
    inputs = {n: _placed(one, call, found) for n, one in inputs.items()}
    notes = [*found.notes]
    notes += [f"the mask {n} is passed as int32: 0 is False, 1 is True" for n, one in inputs.items() if one.boolean]
    if found.built and found.built.module:
        notes.append("it is converted in eval mode: dropout does nothing, statistics stay")
    constant = [key for key, state in (found.built.state if found.built else {}).items() if state.constant]
    if constant:
        notes.append(f"its constructor computes {', '.join(constant)}: no inputs, the kernel computes them itself")
    outputs = {
        ("y" if len(call.results) == 1 else f"y{at}"): Output((), _fixed_dtype(seen, lead), _written(call, at))
        for at, seen in enumerate(call.results)
    }
    fixed = dict(call.others)
    return Draft(
        name, cut, {"N": 1}, inputs, outputs, found.built, fixed=fixed, notes=tuple(notes), products=call.products
    )


def shared(draft: Draft, examples: Examples) -> Draft:
    """The draft of a part: what it shares with other parts is float32, whatever the dtype of the whole's inputs."""
    inputs = {
        name: replace(one, dtype="float32") if one.key in examples.inner and one.range is None else one
        for name, one in draft.inputs.items()
    }
    outputs = {
        name: replace(one, dtype=one.dtype or "float32") if at in examples.passed_on else one
        for at, (name, one) in enumerate(draft.outputs.items())
    }
    return replace(draft, inputs=inputs, outputs=outputs)


def _alike(found: Examined, where: str) -> None:
    """Examples may differ in sizes alone."""
    first = found.calls[0]
    for call in found.calls[1:]:
        if call.others != first.others or list(call.tensors) != list(first.tensors):
            raise UsageError(
                f"{where}: the examples differ in more than sizes ({first.others} and {call.others}): give examples of "
                f"one way to call it, or convert a function for each"
            )


def _argument(key: str, seen: list[Seen]) -> Input:
    first = seen[0]
    strided = not all(one.contiguous for one in seen)
    low, high = min(one.low for one in seen), max(one.high for one in seen)
    if first.dtype == "bool":
        return Input((), "argument", key, "int32", (0, 2), boolean=True)
    if not first.floating:
        dtype = first.dtype if first.dtype in ("int32", "int64") else "int64"
        return Input((), "argument", key, dtype, (int(low), int(high) + 1), strided=strided)
    return Input((), "argument", key, strided=strided, values=_values(first, weights=len(first.shape) == 2))


def _placed(one: Input, call: Called, found: Examined) -> Input:
    """With the example's own sizes."""
    state = found.built.state if found.built else {}
    seen = call.tensors[one.key] if one.kind == "argument" else state[one.key].seen
    return replace(one, shape=tuple(map(str, seen.shape)))


def _values(seen: Seen, *, weights: bool) -> Values:
    """What stands for an input's values: standard normal ones, unless those that were seen are clearly others."""
    count = math.prod(seen.shape)
    if seen.spread == 0:  # all one value: something to start from, which a kernel must not take for granted
        return Values(seen.mean, 0.5, sign=1 if seen.low > 0 else 0)
    sign = 1 if seen.low >= 0 and count >= _FEW else -1 if seen.high <= 0 and count >= _FEW else 0
    if _USUAL[0] <= seen.spread <= _USUAL[1] and abs(seen.mean) < seen.spread:
        return Values(sign=sign)
    if weights and len(seen.shape) > 1 and abs(seen.mean) < seen.spread / 4:
        terms = count // seen.shape[0]
        return Values(0.0, seen.spread * terms**0.5, fan=True, sign=sign)
    center = seen.mean if abs(seen.mean) > seen.spread / 4 else 0.0
    return Values(center, seen.spread, sign=sign)


def _fixed_dtype(seen: Seen, lead: str) -> str:
    return "" if seen.dtype == lead else seen.dtype


def _written(call: Called, at: int) -> str:
    return next((name for name, place in call.written.items() if place == at), "")


def _identifier(key: str, taken: set[str]) -> str:
    name = key.replace(".", "_")
    name = f"{name}_" if keyword.iskeyword(name) or not name.isidentifier() else name
    while name in taken:
        name += "_"
    return name
