"""Rules about addresses in kernels: an integer must not become a pointer unless the op allows it.

Owns which names in kernel bodies hold pointers: parameters that a launch or another kernel gives one, and locals made
of these by arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.infer import Inference
from orchestrator.policy.values import parameters
from orchestrator.records import Status
from orchestrator.source import FunctionNode

Pointers = frozenset[tuple[ast.AST, str]]


def pointer_type(check: Check, node: ast.Attribute, place: Place) -> Iterator[Remark]:
    """`p.dtype` of a pointer is a pointer type: `address.to(p.dtype)` makes a pointer of an integer."""
    if not place.kernel or node.attr not in ("dtype", "type") or not isinstance(node.value, ast.Name):
        return
    if isinstance(place.parent, ast.Attribute):  # p.dtype.element_ty
        return
    if (place.function, node.value.id) in pointers(check.inference):
        what = "can turn an integer into a pointer, here by the type of a pointer"
        advice = "for a value's dtype write p.dtype.element_ty; pass tensors themselves to the kernel"
        yield check.grey(node, "tl.pointer_type", what, Status.FORBIDDEN, advice)


@lru_cache(maxsize=1)
def pointers(inference: Inference) -> Pointers:
    """The names that hold pointers, by kernel."""
    found = {(kernel, name) for (kernel, name), value in inference.kernel_parameters.items() if value.tensor}
    kernels = {kernel.name: kernel.node for kernel in inference.source.kernels}
    size = -1
    while size != len(found):
        size = len(found)
        for kernel in kernels.values():
            found |= {(kernel, name) for name in _locals(kernel, found)}
            found |= set(_passed(kernel, kernels, found))
    return frozenset(found)


def _locals(kernel: FunctionNode, found: set[tuple[ast.AST, str]]) -> Iterator[str]:
    """Locals whose every assignment is a pointer, or pointer arithmetic."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    for name, values in assigned.items():
        if all(_is_pointer(value, kernel, found) for value in values):
            yield name


def _is_pointer(node: ast.expr, kernel: FunctionNode, found: set[tuple[ast.AST, str]]) -> bool:
    match node:
        case ast.Name(id=name):
            return (kernel, name) in found
        case ast.BinOp(left=left, right=right):
            return _is_pointer(left, kernel, found) or _is_pointer(right, kernel, found)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_pointer(body, kernel, found) or _is_pointer(orelse, kernel, found)
    return False


def _passed(
    kernel: FunctionNode, kernels: dict[str, FunctionNode], found: set[tuple[ast.AST, str]]
) -> Iterator[tuple[ast.AST, str]]:
    """Parameters of other kernels that this one calls with a pointer."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kernels:
            target = kernels[node.func.id]
            order = [arg.arg for arg in parameters(target)]
            pairs = [*zip(order, node.args, strict=False), *((k.arg or "", k.value) for k in node.keywords)]
            yield from ((target, name) for name, value in pairs if _is_pointer(value, kernel, found))
