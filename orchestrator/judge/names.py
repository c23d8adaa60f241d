"""The names of the installed Triton, told by a process of its own.

`python -m orchestrator.judge.names` prints one JSON value, {version, entries: [{name, signature, text}]}: every public
name of triton, triton.language, its math, its libdevice and its tensors, with signature and docstring, as the package
itself has them. Says nothing about what a name is good for.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_OURS = {"_semantic", "_generator", "_builder"}  # parameters that the compiler fills in


def entries() -> Iterator[dict[str, str]]:
    """Each name once; what a module only imported is left out."""
    for prefix, place in (("triton", triton), ("tl", tl), ("tl.math", tl.math), ("libdevice", libdevice)):
        for name in sorted(vars(place)):
            thing = getattr(place, name)
            if not name.startswith("_") and not isinstance(thing, ModuleType) and _is_tritons(thing):
                yield _entry(f"{prefix}.{name}", thing)
    for name, thing in sorted(vars(tl.tensor).items()):
        if not name.startswith("_") and callable(thing):
            yield _entry(f"tl.tensor.{name}", thing)


def _is_tritons(thing: Any) -> bool:
    if isinstance(thing, int | float | tl.dtype | tl.constexpr):
        return True
    return str(getattr(thing, "__module__", "")).startswith("triton") and callable(thing)


def _entry(name: str, thing: Any) -> dict[str, str]:
    if isinstance(thing, int | float | tl.dtype | tl.constexpr):
        value = f" = {thing}" if isinstance(thing, int | float) else f": {type(thing).__name__}"
        return {"name": name, "signature": f"{name}{value}", "text": ""}
    text = "" if inspect.isclass(thing) and "__doc__" not in vars(thing) else inspect.getdoc(thing) or ""
    return {"name": name, "signature": _signature(name, getattr(thing, "fn", thing)), "text": text.strip()}


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):  # of what is written in C++
        return name
    kept = [one for one in signature.parameters.values() if one.name not in _OURS]
    if name.startswith("tl.tensor."):
        kept = kept[1:]  # the tensor itself, whatever it is called
    plain = [one.replace(annotation=inspect.Parameter.empty, default=_plain(one.default)) for one in kept]
    return _ADDRESS.sub("", f"{name}{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}")


def _plain(default: Any) -> Any:
    return default.value if isinstance(default, tl.constexpr) else default


if __name__ == "__main__":
    print(json.dumps({"version": triton.__version__, "entries": list(entries())}))
