"""Whether a kernel file's entry function can be called as the op calls it.

Reads the def, calls nothing: a wrong signature is told before anything runs, in the op's own words. What a decorator
makes of the function is not seen; a call that fails for it is RUNTIME_ERROR in the judge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from orchestrator.ops.spec import OpSpec
from orchestrator.records import Finding, Parameter, Status
from orchestrator.source import FunctionNode, Source, read
from orchestrator.text import printable


def check(data: bytes, spec: OpSpec) -> Finding | None:
    """What is wrong with the entry's signature, or None; also None where there is no entry to look at."""
    source = read(data, spec.kernel_name)
    entry = None if isinstance(source, Finding) else entry_of(source, spec.function)
    if isinstance(source, Finding) or entry is None:
        return None
    wrong = next(_problems(entry.args, [*spec.inputs], spec.parameters), None)
    if wrong is None:
        return None
    taken = printable(ast.unparse(entry.args))
    message = f"{spec.function} takes ({taken}), the op calls {spec.entry}: {wrong}"
    return source.finding(
        Status.COMPILE_ERROR, entry, message, f"write `def {spec.entry}:`, with these names in this order"
    )


def entry_of(source: Source, name: str) -> FunctionNode | None:
    """The def that the name stands for when the file has run: the last one."""
    found = [f.node for f in source.functions if f.name == name and f.top_level and f.owner is None]
    return max(found, key=lambda node: node.lineno, default=None)


def _problems(arguments: ast.arguments, inputs: Sequence[str], parameters: dict[str, Parameter]) -> Iterator[str]:
    """Why a call by position or by name fails, or means something else, one reason at a time."""
    wanted = [*inputs, *parameters]
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = {argument.arg for argument in arguments.kwonlyargs}
    if missing := [name for name in wanted if name not in positional and name not in keyword_only]:
        yield f"{_named(missing)} missing"
    if unnamed := [argument.arg for argument in arguments.posonlyargs if argument.arg in wanted]:
        yield f"{_named(unnamed)} positional-only, and the op passes arguments by name"
    if named := [name for name in wanted if name in keyword_only]:
        yield f"{_named(named)} keyword-only, and callers pass them by position too"
    if positional[: len(wanted)] != wanted:
        yield "the order is another one"
    defaults = _defaults(arguments)
    if extra := [name for name in [*positional, *keyword_only] if name not in wanted and name not in defaults]:
        yield f"{_named(sorted(extra))} required, and the op does not pass {'them' if len(extra) > 1 else 'it'}"
    for name, value in parameters.items():
        if name not in defaults:
            yield f"{name} has no default, the op's is {value!r}"
        elif (own := _constant(defaults[name])) is not None and own != value:
            yield f"{name} defaults to {own!r}, the op's default is {value!r}"


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    pairs = [
        *zip(last, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {argument.arg: default for argument, default in pairs if default is not None}


def _constant(node: ast.expr) -> Parameter | None:
    """A default written as a literal; another expression is not followed."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, int | float) and not abs(value) < 1e300:
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name, 40) for name in names[:5])
    return f"{shown} {'are' if len(names) > 1 else 'is'}"
