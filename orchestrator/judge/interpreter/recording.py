"""Which specializations of its kernels a candidate launched: what `ahead` compiles for real targets.

Triton's own binder decides the types, which integers are constants or divisible by 16, and which pointers are
aligned, as it would at a launch on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime import jit

from orchestrator.judge.ahead.records import Specialization, Unrecordable, encode, form

_MOST = 200  # kinds of launches that are kept; a kernel with more has told enough
_seen: dict[str, Specialization] = {}


def specializations() -> list[Specialization]:
    """What was launched since the last `forget`, each kind once, in the order of the first launch."""
    return list(_seen.values())


def forget() -> None:
    """Start over."""
    _seen.clear()


def record(owner: Any, parameters: Sequence[Any], bound: dict[str, Any], options: dict[str, Any]) -> None:
    """Keep a launch of `owner` with these arguments and launch options."""
    if len(_seen) >= _MOST:
        return
    try:
        found = _specialization(owner, parameters, bound, options)
    except (Unrecordable, TypeError, ValueError) as error:
        found = Specialization(owner.fn.__qualname__, _line(owner), limit=f"cannot be written down: {error}"[:300])
    _seen.setdefault(found.to_json(), found)


def _specialization(
    owner: Any, parameters: Sequence[Any], bound: dict[str, Any], options: dict[str, Any]
) -> Specialization:
    _, found, _ = _binder(owner)(**{name: bound[name] for name in owner.arg_names})
    types = [kind for kind, _ in found]
    attributes = ["" if kind == "constexpr" else about for kind, about in found]
    constants = jit.find_paths_if(types, lambda _, kind: kind == "constexpr")
    values = list(bound[name] for name in owner.arg_names)
    return Specialization(
        kernel=owner.fn.__qualname__,
        line=_line(owner),
        types=dict(zip(owner.arg_names, map(form, types), strict=True)),
        constants=[[list(path), encode(jit.get_iterable_path(values, path))] for path in constants],
        attributes=[
            [list(path), jit.get_iterable_path(attributes, path)]
            for path in jit.find_paths_if(attributes, lambda _, about: isinstance(about, str))
        ],
        options={name: encode(value) for name, value in sorted(options.items()) if value is not None},
    )


def _line(owner: Any) -> int:
    return int(owner.fn.__code__.co_firstlineno)


@cache
def _binder(owner: Any) -> Any:
    made = jit.JITFunction(owner.fn, **owner.kwargs)
    return jit.create_function_from_signature(made.signature, made.params, make_backend(GPUTarget("cuda", 90, 32)))
