"""What is compiled ahead, and what came of it. Plain data: neither torch nor triton."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from orchestrator.records import Compiled, Parameter


class Unrecordable(Exception):
    """A constant of a launch that has no form as text."""


@dataclass(frozen=True)
class Specialization:
    """One kind of launch of one kernel, as Triton's compiler tells kinds apart. JSON-able."""

    kernel: str  # the function's qualified name
    line: int  # of its first decorator: what tells two functions of one name apart
    types: dict[str, Any] = field(default_factory=dict)  # parameter -> "i32", "fp32", "*fp16", "constexpr", or a `form`
    constants: list[Any] = field(default_factory=list)  # [path to the argument, its value encoded]
    attributes: list[Any] = field(default_factory=list)  # [path, Triton's letters: "D" divisible by 16]
    options: dict[str, Any] = field(default_factory=dict)  # num_warps and its kin, encoded
    limit: str = ""  # why it cannot be compiled elsewhere; then the rest is empty

    def to_json(self) -> str:
        """As text; equal specializations give equal texts. The order of `types` is the parameters'."""
        return json.dumps(asdict(self))

    def plain_types(self) -> dict[str, str]:
        """The types of those arguments that are no constants."""
        return {name: kind for name, kind in self.types.items() if isinstance(kind, str) and kind != "constexpr"}

    def plain_constants(self) -> dict[str, Parameter]:
        """The constants that are numbers or text, by the names of their arguments."""
        names = list(self.types)
        whole = ((path, value) for path, value in self.constants if len(path) == 1)
        plain = {names[path[0]]: value for path, value in whole if isinstance(value, bool | int | float | str)}
        return {name: str(value) if _endless(value) else value for name, value in plain.items()}


@dataclass(frozen=True)
class CompileResult:
    """What compiling one specialization for one target came to."""

    kernel: str
    target: str
    ok: bool
    error: str = ""  # the compiler's words, headed by the kernel's line; empty when ok
    limit: str = ""  # why it could not be tried; then neither ok nor an error
    seconds: float = 0.0
    compiled: Compiled | None = None  # when ok: what it became
    cached: bool = False

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))


def specialization_from_json(text: str) -> Specialization:
    """Reads what `to_json` wrote. Raises ValueError."""
    return _SPECIALIZATION.validate_json(text)


def result_from_json(text: str) -> CompileResult:
    """Reads what `to_json` wrote. Raises ValueError."""
    return _RESULT.validate_json(text)


_SPECIALIZATION = TypeAdapter(Specialization)
_RESULT = TypeAdapter(CompileResult)


def _endless(value: Parameter) -> bool:
    """An infinity or NaN, which a record's JSON has no number for."""
    return isinstance(value, float) and not math.isfinite(value)


def form(kind: Any) -> Any:
    """An argument's type as JSON: text, or what its parts have, with their names where it is a named tuple."""
    return _parts(kind, [form(part) for part in kind]) if isinstance(kind, tuple) else kind


def _parts(whole: Any, parts: list[Any]) -> dict[str, Any]:
    names = getattr(whole, "_fields", None)
    return {"tuple": parts, "fields": names} if names else {"tuple": parts}


def encode(value: Any) -> Any:
    """A constant as JSON. Raises Unrecordable."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return _parts(value, [encode(item) for item in value])
    kind = type(value).__name__
    if kind == "constexpr":
        return encode(value.value)
    if kind == "dtype" and hasattr(value, "primitive_bitwidth"):
        return {"dtype": value.name}
    if hasattr(value, "rewriter") or hasattr(value, "cache_key"):
        return {"function": value.fn.__qualname__, "line": value.fn.__code__.co_firstlineno}
    raise Unrecordable(f"a constant of type {kind}")
