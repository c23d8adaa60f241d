"""What the target is called with, as a person writes it in a YAML file or as a trace of a script found it.

Owns the form of such a file, and checks it. Both become the same facts; the probe makes tensors of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator import yamlfile
from orchestrator.errors import UsageError
from orchestrator.probed import Literal, Seen

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_FORM = "inputs: {x: {shape: [2, 16, 64], dtype: float32}}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Tensor(_Strict):
    """A tensor: floats are standard normal, or as wide as `range`; integers need one, to before its second."""

    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: str = "float32"
    range: tuple[float, float] | None = None


class _Call(_Strict):
    inputs: Annotated[dict[str, _Tensor], Field(min_length=1)]
    arguments: dict[str, Literal] = {}


class _File(_Strict):
    """shapes.yaml: one call, or several, and the arguments of a class's constructor."""

    init: dict[str, Any] | list[Any] | None = None
    inputs: dict[str, _Tensor] = {}
    arguments: dict[str, Literal] = {}
    calls: tuple[_Call, ...] = ()


@dataclass(frozen=True)
class Examples:
    """Calls as facts, and a constructor's arguments; without calls, the file's own get_inputs() has them.

    Of a part of something larger: the arguments that another part makes (`inner`), and the results that another part
    takes (`passed_on`). These stay in float32, as within the whole nothing is rounded either.
    """

    calls: tuple[dict[str, Any], ...] = ()
    init: dict[str, Any] | list[Any] | None = None
    inner: tuple[str, ...] = ()
    passed_on: tuple[int, ...] = ()


@dataclass(frozen=True)
class PartSeen:
    """What a part of a split was called with, and what it shares with other parts."""

    calls: tuple[dict[str, Any], ...]
    inner: tuple[str, ...]
    passed_on: tuple[int, ...]


def read(path: Path) -> Examples:
    """The examples of a YAML file. Raises UsageError."""
    content = yamlfile.read(path, str(path))
    if not isinstance(content, dict):
        raise UsageError(f"{path} gives no call: write {_FORM}")
    if not isinstance(content.get("init", {}), dict | list | None):
        raise UsageError(f"{path}: init: give the constructor's arguments as {{name: value}}, or as a list")
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = yamlfile.place(first["loc"]) or "its top"
        raise UsageError(f"{path}: {where}: {first['msg']}; a call is `{_FORM}`") from error
    calls = file.calls or ((_Call(inputs=file.inputs, arguments=file.arguments),) if file.inputs else ())
    if not calls and file.init is None:
        raise UsageError(f"{path} gives no call: write {_FORM}")
    facts = tuple(
        facts_of({name: _seen(path, name, one) for name, one in call.inputs.items()}, call.arguments) for call in calls
    )
    return Examples(facts, file.init)


def facts_of(tensors: dict[str, Seen], others: dict[str, Literal]) -> dict[str, Any]:
    """One call as the probe takes it."""
    return {"tensors": {name: asdict(one) for name, one in tensors.items()}, "others": others}


def _seen(path: Path, name: str, one: _Tensor) -> Seen:
    if one.range is not None and not (math.isfinite(one.range[1] - one.range[0]) and one.range[0] < one.range[1]):
        raise UsageError(
            f"{path}: inputs.{name}.range: {list(one.range)} holds nothing: the first must be below the second"
        )
    if one.dtype == "bool":
        return Seen(one.shape, one.dtype, True, 0, 1, 0.5, 0.5)
    if one.dtype in _INTEGERS:
        if one.range is None:
            raise UsageError(f"{path}: inputs.{name} holds integers: say which, range: [0, 100] for 0 to 99")
        return Seen(one.shape, one.dtype, True, one.range[0], one.range[1] - 1)
    if one.dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise UsageError(
            f"{path}: inputs.{name}: dtype {one.dtype!r} is not one of bool, {', '.join(_INTEGERS)}, float16 to float64"
        )
    if one.range is None:
        return Seen(one.shape, one.dtype, True, -1, 1, 0, 1)
    low, high = one.range
    return Seen(one.shape, one.dtype, True, low, high, (low + high) / 2, (high - low) / 12**0.5)


def larger_first(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls by their number of elements: the first is the example whose sizes are varied."""
    return sorted(calls, key=lambda call: -sum(math.prod(one["shape"]) for one in call["tensors"].values()))


def distinct(calls: Sequence[dict[str, Any]], most: int) -> tuple[dict[str, Any], ...]:
    """At most so many calls, one of each set of shapes."""
    by_shape: dict[str, dict[str, Any]] = {}
    for call in calls:
        by_shape.setdefault(str([(name, one["shape"]) for name, one in call["tensors"].items()]), call)
    return tuple(by_shape.values())[:most]
