"""Host code around the launch: copies, allocations, synchronisation, devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit import host
from orchestrator.audit.context import Context, meanings
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.host import Scope, body_nodes
from orchestrator.audit.rules.base import rule

WAITING = {"item", "cpu", "tolist", "numpy", "synchronize"}


def launching(context: Context) -> list[Scope]:
    """The host functions that launch a kernel, each once."""
    found: dict[int, Scope] = {id(one.scope): one.scope for one in context.launches if one.scope.function is not None}
    return list(found.values())


@rule(
    "contiguous-copy",
    Severity.LOW,
    Part.PERFORMANCE,
    "`.contiguous()` before the launch",
    why="For a strided input it reads and writes the whole tensor once more, often longer than the kernel itself.",
    repair="Pass strides to the kernel.",
)
def contiguous_copy(context: Context) -> Iterator[Hit]:
    for scope in launching(context):
        for node in body_nodes(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "contiguous":
                yield Hit(node, "a copy for every strided input")


@rule(
    "allocation-in-loop",
    Severity.MEDIUM,
    Part.PERFORMANCE,
    "an allocation inside a host loop",
    why="Each turn pays for the allocator, and the memory of earlier turns cannot be reused before it is freed.",
    repair="Allocate once, before the loop.",
)
def allocation_in_loop(context: Context) -> Iterator[Hit]:
    for scope in launching(context):
        for loop in body_nodes(scope):
            if isinstance(loop, (ast.For, ast.While)):
                inner = [node for statement in loop.body for node in ast.walk(statement)]
                for node in inner:
                    if isinstance(node, ast.Call) and host.allocation(node, context.source):
                        yield Hit(node, "allocated anew in each turn of the loop")


@rule(
    "zeros-not-needed",
    Severity.LOW,
    Part.PERFORMANCE,
    "zeros where empty would do",
    why="The kernel overwrites it; filling it first is one more launch and one more pass over memory.",
    repair="`torch.empty`, if the kernel writes every element.",
)
def needless_zeros(context: Context) -> Iterator[Hit]:
    users: dict[ast.AST, set[str]] = {}
    for flow in context.flows:
        read = {one.base for one in flow.kinds("load", "atomic")}
        written = {one.base for one in flow.kinds("store")}
        for bound in context.launches_of(flow.name):
            for name, given in bound.arguments.items():
                for node in meanings(given, bound.scope):
                    if "zeros" in host.allocation(node, context.source):
                        use = "read" if name in read or name not in written else "written"
                        users.setdefault(node, set()).add(use)
    for zeros, uses in users.items():
        if uses == {"written"}:
            yield Hit(zeros, "no kernel reads it before it is written")


@rule(
    "synchronisation",
    Severity.MEDIUM,
    Part.PERFORMANCE,
    "the host waits for the GPU",
    why="The next launch cannot be queued while the host waits, and a graph cannot be captured.",
    repair="Leave values on the device, and synchronise where the result is used.",
)
def waiting(context: Context) -> Iterator[Hit]:
    for scope in launching(context):
        for node in body_nodes(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITING:
                yield Hit(node, f"`.{node.func.attr}()` waits until the GPU is done")


@rule(
    "foreign-device",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "a tensor is allocated on a device that is named, not the input's",
    why='"cuda" is the current device: with a tensor on another one the kernel gets pointers of two devices.',
    repair="`device=x.device`.",
)
def named_device(context: Context) -> Iterator[Hit]:
    for scope in launching(context):
        for node in body_nodes(scope):
            if not isinstance(node, ast.Call) or not host.allocation(node, context.source):
                continue
            device = host.keyword(node, "device")
            if isinstance(device, ast.Constant) and str(device.value).startswith(("cuda", "hip")):
                yield Hit(node, f"on {device.value!r}, whatever the input's device")


@rule(
    "no-device-guard",
    Severity.LOW,
    Part.PRACTICE,
    "the launch goes to the current device",
    why="Triton launches on torch's current device; for a tensor of another one that is an illegal access.",
    repair="`with torch.cuda.device_of(x):` around the launch, where inputs may lie on other devices.",
)
def no_guard(context: Context) -> Iterator[Hit]:
    text = context.source.text
    if context.launches and not any(
        word in text for word in ("device_of", "cuda.device(", "set_device", "device_guard")
    ):
        yield Hit(context.launches[0].launch.call, "right only where the tensor's device is the current one")


@rule(
    "empty-input",
    Severity.LOW,
    Part.CORRECTNESS,
    "a size divides on the host",
    why="For an empty tensor the division fails before the launch is reached.",
    repair="Return early when there is nothing to do.",
)
def empty_input(context: Context) -> Iterator[Hit]:
    for scope in launching(context):
        for node in body_nodes(scope):
            divides = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))
            if divides and isinstance(node, ast.BinOp) and scope.is_size(node.right) and not _checked(scope):
                yield Hit(node, f"fails where {ast.unparse(node.right)} is 0")


def _checked(scope: Scope) -> bool:
    """Whether the function returns early, or refuses something."""
    kinds = (ast.If, ast.Assert)
    return scope.function is not None and any(isinstance(node, kinds) for node in ast.walk(scope.function.node))
