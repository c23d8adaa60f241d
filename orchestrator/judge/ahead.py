"""Kernels compiled for real targets, without a GPU and without being run.

Owns the record of a specialization, and compiling it. Imports no triton by itself: in a process where Triton
interprets nothing can be compiled, and the record is used there too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


class Unrecordable(Exception):
    """A constant of a launch that has no form as text."""


@dataclass(frozen=True)
class Specialization:
    """One kind of launch of one kernel, as Triton's compiler tells kinds apart. JSON-able."""

    kernel: str  # the function's qualified name
    line: int  # of its first decorator: what tells two functions of one name apart
    types: dict[str, Any] = field(default_factory=dict)  # parameter -> "i32", "fp32", "*fp16", "constexpr", or a list
    constants: list[Any] = field(default_factory=list)  # [path to the argument, its value encoded]
    attributes: list[Any] = field(default_factory=list)  # [path, Triton's letters: "D" divisible by 16]
    options: dict[str, Any] = field(default_factory=dict)  # num_warps and its kin, encoded
    limit: str = ""  # why it cannot be compiled elsewhere; then the rest is empty

    def to_json(self) -> str:
        """As text; equal specializations give equal texts."""
        return json.dumps(asdict(self), sort_keys=True)


def encode(value: Any) -> Any:
    """A constant as JSON. Raises Unrecordable."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return {"tuple": [encode(item) for item in value]}
    kind = type(value).__name__
    if kind == "constexpr":
        return encode(value.value)
    if kind == "dtype" and hasattr(value, "primitive_bitwidth"):
        return {"dtype": value.name}
    if hasattr(value, "rewriter") or hasattr(value, "cache_key"):
        return {"function": value.fn.__qualname__, "line": value.fn.__code__.co_firstlineno}
    raise Unrecordable(f"a constant of type {kind}")
