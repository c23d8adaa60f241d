"""Sizes as arithmetic over dims: which names an expression uses, and what it comes to.

Text of op.yaml is written into files that are run, so `names` refuses whatever is no plain arithmetic; `value` is for
what has passed that, or was written by us.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence


def names(expression: str | int, where: str) -> set[str]:
    """The names that arithmetic uses. Raises ValueError, which says `where`, for anything else."""
    allowed = (ast.Expression, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Name, ast.Load, ast.Constant)
    try:
        nodes = list(ast.walk(ast.parse(str(expression), mode="eval")))
    except SyntaxError:
        raise ValueError(f"{where}: {expression!r} is no arithmetic such as '2 * N'") from None
    if wrong := [node for node in nodes if not isinstance(node, allowed)]:
        raise ValueError(f"{where}: {expression!r} is no plain arithmetic: {ast.unparse(wrong[0])}")
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def value(expression: str, sizes: Mapping[str, int]) -> int:
    """What it comes to where its names are these sizes. It is evaluated: only for what `names` has let through."""
    return int(eval(expression, {"__builtins__": {}}, dict(sizes)))


def count(shape: Sequence[str]) -> str:
    """How many elements a tensor has whose sizes are arithmetic: "M * (N // 2)"."""
    return " * ".join(size if size.isidentifier() or size.isdigit() else f"({size})" for size in shape) or "1"
