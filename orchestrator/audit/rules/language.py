"""The language of the Triton that is installed, and what of it is fragile."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit.context import Context
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.rules.base import rule

LANGUAGE = "triton.language."
FLOAT_ATOMICS = {"atomic_add"}
SMALLEST_DOT = 16


@rule(
    "unknown-name",
    Severity.HIGH,
    Part.PRACTICE,
    "the installed Triton has no such name",
    why="The kernel does not compile here.",
    repair="Use what this release has; its names are in `dir(triton.language)`.",
)
def unknown_name(context: Context) -> Iterator[Hit]:
    language = context.language
    if language is None:
        return
    tried = {node for one in ast.walk(context.source.tree) if isinstance(one, ast.Try) for node in ast.walk(one)}
    for node in ast.walk(context.source.tree):
        if not isinstance(node, ast.Attribute) or node in tried or f'"{node.attr}"' in context.source.text:
            continue
        path = context.source.dotted(node)
        inner = path.removeprefix(LANGUAGE).split(".") if path.startswith(LANGUAGE) else []
        if len(inner) == 1 and inner[0] not in language.names:
            yield Hit(node, f"triton {language.version} has no tl.{inner[0]}")
        elif len(inner) == 2 and inner[0] == "math" and inner[1] not in language.math:
            yield Hit(node, f"triton {language.version} has no tl.math.{inner[1]}")


@rule(
    "deprecated-name",
    Severity.LOW,
    Part.PRACTICE,
    "the installed Triton deprecates it",
    why="A later release takes it away, and the kernel no longer compiles there.",
    repair="Use what the warning names.",
)
def deprecated_name(context: Context) -> Iterator[Hit]:
    if context.language is None:
        return
    for flow in context.flows:
        for node in ast.walk(flow.kernel.node):
            if isinstance(node, ast.Attribute):
                path = context.source.dotted(node)
                said = context.language.deprecated.get(path.removeprefix(LANGUAGE)) if path else None
                if said is not None and path.startswith(LANGUAGE):
                    yield Hit(node, f"triton {context.language.version} says: {said}")


@rule(
    "method-on-scalar",
    Severity.LOW,
    Part.PRACTICE,
    "`.to()` of a number that the caller passes",
    why="An argument of value 1 is specialised to a constant, which has no `.to`; the interpreter passes numbers.",
    repair="`tl.cast(x, ...)`, or rely on promotion.",
)
def method_on_scalar(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for node in ast.walk(flow.kernel.node):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="to")) if name in flow.parameters:
                    if not _assigned(flow.kernel.node, name):
                        yield Hit(node, f"{name} is an argument: fails where it is 1")


def _assigned(kernel: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in ast.walk(kernel)
    )


@rule(
    "order-of-atomics",
    Severity.LOW,
    Part.NUMERICS,
    "floats are added by atomic operations",
    why="The order differs from run to run, and so do the last bits.",
    repair="Write partial sums and add them in a second kernel, where results must repeat.",
)
def atomic_order(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for one in flow.kinds("atomic"):
            name = one.node.func.attr if isinstance(one.node.func, ast.Attribute) else ""
            floats = one.data is not None and one.data.loads and one.data.dtype not in ("int", "int64")
            if name in FLOAT_ATOMICS and floats:
                yield Hit(one.node, "results differ in their last bits from run to run")


@rule(
    "small-dot",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "tl.dot on a block of less than 16",
    why="Tensor cores have smallest shapes: below 16 along an inner axis tl.dot does not compile on most GPUs.",
    repair="Use blocks of at least 16 and mask, or multiply and sum.",
)
def small_dot(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for dot in flow.of("dot"):
            names = sorted({name for one in dot.operands[:2] for name in one.extents})
            sizes = [(name, one.value) for name in names for one in context.extents(flow, name)]
            small = [(name, size) for name, size in sizes if size is not None and size < SMALLEST_DOT]
            if small:
                yield Hit(dot.node, f"{small[0][0]} can be {small[0][1]}")
