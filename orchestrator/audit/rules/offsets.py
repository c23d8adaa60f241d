"""Addresses: 32-bit offsets, layouts that are allocated one way and written another, races."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit import host
from orchestrator.audit.context import Context, meanings
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.flow import Access, Flow
from orchestrator.audit.host import Bound
from orchestrator.audit.rules.base import rule


@rule(
    "int32-offset",
    Severity.MEDIUM,
    Part.MEMORY,
    "an offset computed in 32 bits",
    why="Program ids and sizes are int32: their product wraps at 2**31 elements, and the kernel reads or writes before "
    "the tensor, mostly without an error. A cast after the product comes too late.",
    repair="Cast first: `row = tl.program_id(0).to(tl.int64)`.",
)
def narrow_offset(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        seen: set[ast.AST] = set()
        for access in flow.accesses.values():
            for node in sorted(access.pointer.wrapping - seen, key=lambda one: getattr(one, "lineno", 0)):
                seen.add(node)
                product = flow.operations.get(node)
                by_row = product is not None and any(one.row for one in product.operands)
                severity = None if by_row else Severity.LOW
                yield Hit(node, f"wraps where `{ast.unparse(node)}` passes 2**31", severity)


@rule(
    "store-then-load",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "memory is written and then read in the same kernel without a barrier",
    why="Lanes of a block are spread over threads: what one thread stored another may not see yet.",
    repair="Keep the value in a variable, put `tl.debug_barrier()` between, or make it two kernels.",
)
def store_then_load(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        barriers = [node.lineno for node in flow.barriers if isinstance(node, ast.Call)]
        stores = [one for one in flow.kinds("store") if one.base]
        for load in flow.kinds("load"):
            before = [one for one in stores if one.base == load.base and one.node.lineno < load.node.lineno]
            if not before or not (load.pointer.axes or before[-1].pointer.axes):
                continue
            store = before[-1]
            if any(store.node.lineno <= line <= load.node.lineno for line in barriers):
                continue
            same = "the same offsets" if store.where == load.where else "other offsets"
            yield Hit(load.node, f"{load.base} was stored to in line {store.node.lineno}, at {same}")


@rule(
    "written-with-foreign-strides",
    Severity.MEDIUM,
    Part.MEMORY,
    "a new tensor is written with another tensor's strides",
    why="A new tensor is dense. Where the input is a slice, its strides lead the store beyond the output's end.",
    repair="Pass the output's own strides, or make the input contiguous first.",
)
def foreign_strides(context: Context) -> Iterator[Hit]:
    for bound, access in _stores_to_new(context):
        strides = _strides_in(bound, access)
        owner = _name(bound.arguments.get(access.base))
        foreign = sorted(one for one in strides if one != owner)
        if foreign and owner not in strides and not _contiguous(bound, foreign[0]):
            yield Hit(access.node, f"{access.base} is new, and its offsets use strides of {', '.join(foreign)}")


@rule(
    "dense-into-kept-strides",
    Severity.MEDIUM,
    Part.MEMORY,
    "empty_like keeps the input's strides, the kernel writes densely",
    why="The *_like functions keep a permuted layout: for a transposed input the result comes out permuted.",
    repair="`torch.empty_like(x, memory_format=torch.contiguous_format)`, or pass the output's strides.",
)
def kept_strides(context: Context) -> Iterator[Hit]:
    for bound, access in _stores_to_new(context):
        node = next(iter(meanings(bound.arguments[access.base], bound.scope)), None)
        if not isinstance(node, ast.Call) or not host.allocation(node, context.source).endswith("_like"):
            continue
        template = _name(node.args[0]) if node.args else ""
        aware = any(template in _owners(value) for value in bound.arguments.values())
        if host.keyword(node, "memory_format") or not aware or _contiguous(bound, template):
            continue
        if not _strides_in(bound, access):
            yield Hit(node, f"line {access.node.lineno} writes it densely; {template} is read by its strides")


@rule(
    "assumes-contiguous",
    Severity.LOW,
    Part.CORRECTNESS,
    "the kernel takes it for granted that its input is contiguous",
    why="Given a slice or a transposed tensor it reads other elements, without an error.",
    repair="Pass strides, or check `is_contiguous()` on the host.",
)
def contiguity(context: Context) -> Iterator[Hit]:
    seen: set[tuple[str, str]] = set()
    for flow in context.flows:
        for bound in context.launches_of(flow.name):
            for base in sorted({one.base for one in flow.kinds("load") if one.pointer.axes and one.base}):
                name = _name(bound.arguments.get(base))
                if not name or name not in bound.scope.parameters or (flow.name, name) in seen:
                    continue
                strides = any(name in _owners(value) for value in bound.arguments.values())
                if not strides and not _contiguous(bound, name):
                    seen.add((flow.name, name))
                    yield Hit(bound.launch.call, f"nothing here says that {name} is contiguous")


@rule(
    "writes-into-input",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "the kernel writes into a tensor that the caller passed",
    why="The caller's tensor changes; a gradient or an activation that is used again is wrong afterwards.",
    repair="Write into a new tensor, or say so in the name (`out`, or a name ending in _).",
)
def writes_input(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for bound in context.launches_of(flow.name):
            function = bound.scope.function
            if function is None or function.name.rstrip("_") != function.name:
                continue
            inputs = {_name(bound.arguments.get(one.base)) for one in flow.kinds("load")}
            for base in sorted({one.base for one in flow.kinds("store") if one.base}):
                name = _name(bound.arguments.get(base))
                if name in bound.scope.parameters and name in inputs and not bound.scope.meanings(name):
                    store = next(one for one in flow.kinds("store") if one.base == base)
                    yield Hit(store.node, f"{base} is the argument {name} of {function.name}", _gravity(name))


def _gravity(name: str) -> Severity | None:
    return Severity.LOW if "out" in name or name.startswith(("y", "d", "tmp", "buf")) else None


def _stores_to_new(context: Context) -> Iterator[tuple[Bound, Access]]:
    """The first store of each kernel to each tensor that a launch's host function allocated."""
    for flow in context.flows:
        for bound in context.launches_of(flow.name):
            for access in _first_stores(flow):
                given = bound.arguments.get(access.base)
                if given is not None and any(host.allocation(m, context.source) for m in meanings(given, bound.scope)):
                    yield bound, access


def _first_stores(flow: Flow) -> list[Access]:
    found: dict[str, Access] = {}
    for access in flow.kinds("store"):
        if access.base and not access.checked:
            found.setdefault(access.base, access)
    return list(found.values())


def _strides_in(bound: Bound, access: Access) -> set[str]:
    """The host tensors whose strides take part in an access's offsets."""
    try:
        names = {node.id for node in ast.walk(ast.parse(access.where, mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError:
        return set()
    return {owner for name in names if name in bound.arguments for owner in _owners(bound.arguments[name])}


def _owners(node: ast.expr) -> set[str]:
    """The tensors whose strides an expression asks for."""
    return {
        _name(call.func.value)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "stride"
    }


def _contiguous(bound: Bound, name: str) -> bool:
    """Whether the host makes it contiguous, new, or asks."""
    if bound.scope.function is None:
        return False
    made = [ast.unparse(one) for one in bound.scope.meanings(name)]
    if any("contiguous" in text or "empty" in text or "reshape" in text for text in made):
        return True
    return f"{name}.is_contiguous" in ast.unparse(bound.scope.function.node)


def _name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""
