"""Autotune, constants that compile anew, and the launch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit.context import Context, extent
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.flow import Access, Flow
from orchestrator.audit.host import Bound
from orchestrator.audit.rules.base import rule

CHANGING = {
    "seed",
    "step",
    "iteration",
    "it",
    "epoch",
    "position",
    "pos",
    "offset",
    "lr",
    "learning_rate",
    "alpha",
    "p",
}
CHANGING_CALLS = ("item", "random", "time", "perf_counter", "data_ptr", "randint", "uniform")
GRID_LIMIT = 65_535


@rule(
    "autotune-in-place",
    Severity.HIGH,
    Part.CORRECTNESS,
    "autotune on a kernel that accumulates or works in place",
    why="The first call for a key runs every configuration many times on the caller's buffers: what it adds or writes "
    "it adds or writes each time, and the first result is wrong.",
    repair="Name the tensors: `reset_to_zero=[...]` for accumulators, `restore_value=[...]` for what is overwritten.",
)
def tuned_in_place(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        tuning = context.tunings.get(flow.name)
        if tuning is None or tuning.hooked or tuning.configurations == 1:
            continue
        for base, (how, severity) in sorted(_rewritten(flow).items()):
            if base not in tuning.protected:
                yield Hit(tuning.call, f"{base} is {how}, and is neither reset nor restored", severity)


def _rewritten(flow: Flow) -> dict[str, tuple[str, Severity | None]]:
    """The pointers of which a second run finds other values than the first, and how that comes.

    A maximum, or a choice between what was there and something else, comes out alike however often it is made.
    """
    found: dict[str, tuple[str, Severity | None]] = {
        one.base: ("added to by atomic operations", None) for one in flow.kinds("atomic") if one.base and _adds(one)
    }
    for store in flow.kinds("store"):
        for load in flow.kinds("load"):
            earlier = load.node.lineno <= store.node.lineno
            again = store.data is not None and load.node in store.data.loads and not store.data.selected
            if store.base and load.base == store.base and earlier and again:
                same = load.where == store.where
                found.setdefault(store.base, ("read and overwritten", None if same else Severity.MEDIUM))
    return found


@rule(
    "autotune-key",
    Severity.MEDIUM,
    Part.PERFORMANCE,
    "the autotune key leaves out a size",
    why="The configuration that won for the first size is kept for every other one.",
    repair="Add it to `key`. Element types of tensors are part of the key by themselves.",
)
def key_without_size(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        tuning = context.tunings.get(flow.name)
        if tuning is None or tuning.key is None or tuning.configurations == 1:
            continue
        sizes = [name for name in flow.parameters if name in flow.loop_bounds or name in _mask_sizes(flow)]
        missing = [name for name in sizes if name not in flow.constexprs and name not in tuning.key]
        blocks_known = set(tuning.key) & flow.constexprs
        if missing and not blocks_known:
            yield Hit(tuning.call, f"{', '.join(missing)} not in key={list(tuning.key)}")


def _adds(access: Access) -> bool:
    called = access.node.func
    return isinstance(called, ast.Attribute) and called.attr in ("atomic_add", "atomic_xor")


def _mask_sizes(flow: Flow) -> set[str]:
    """Names that lanes are compared with."""
    found: set[str] = set()
    for node in ast.walk(flow.kernel.node):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
            found |= {one.id for one in node.comparators if isinstance(one, ast.Name)}
    return found


@rule(
    "constexpr-changes",
    Severity.MEDIUM,
    Part.PERFORMANCE,
    "a constexpr that changes from call to call",
    why="Each new value of a constexpr compiles the kernel anew: seconds, not microseconds.",
    repair="Make it an ordinary argument.",
)
def changing_constexpr(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for bound in context.launches_of(flow.name):
            for name in sorted(flow.constexprs & set(bound.arguments)):
                given = bound.arguments[name]
                if _changes(given, bound):
                    yield Hit(given, f"{name} gets {ast.unparse(given)}: a new value compiles the kernel again")
                elif extent(given, bound.scope).kind == "size":
                    yield Hit(given, f"{name} gets a size: each one compiles the kernel again", Severity.LOW)


def _changes(node: ast.expr, bound: Bound) -> bool:
    if isinstance(node, ast.Name) and not bound.scope.meanings(node.id):
        return node.id in bound.scope.parameters and node.id.lower() in CHANGING
    parts = bound.scope.meanings(node.id) if isinstance(node, ast.Name) else [node]
    calls = [one for part in parts for one in ast.walk(part) if isinstance(one, ast.Call)]
    return any(ast.unparse(call.func).rsplit(".", 1)[-1] in CHANGING_CALLS for call in calls)


@rule(
    "grid-limit",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "a size on the second or third axis of the grid",
    why=f"CUDA allows {GRID_LIMIT} programs on axes 1 and 2; a larger grid does not start.",
    repair="Put what can be large on axis 0, and the blocks of a row on axis 1.",
)
def grid_limit(context: Context) -> Iterator[Hit]:
    for bound in context.launches:
        for number, axis in enumerate(bound.grid):
            if number and bound.scope.is_size(axis):
                yield Hit(axis, f"axis {number} has {ast.unparse(axis)} programs: fails beyond {GRID_LIMIT}")


@rule(
    "grid-axis-missing",
    Severity.HIGH,
    Part.CORRECTNESS,
    "the kernel and its grid disagree about the axes",
    why="On an axis that the grid does not have, the program id is always 0; an axis that the kernel does not ask for "
    "repeats the same work, and what is added there is added several times.",
    repair="Give the grid as many axes as the kernel reads.",
)
def grid_axes(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        asked = {_literal(one.node) for one in flow.of("program_id")}
        for bound in context.launches_of(flow.name):
            grid = bound.grid
            if not grid or None in asked or any(isinstance(axis, ast.Starred) for axis in grid):
                continue
            beyond = sorted(axis for axis in asked if axis is not None and axis >= len(grid))
            if beyond:
                message = f"{flow.name} asks for axis {beyond[0]}, the grid has {len(grid)}"
                yield Hit(bound.launch.call, message, Severity.MEDIUM)
            if _helpers(context, flow):
                continue
            for number, axis in enumerate(grid):
                one = isinstance(axis, ast.Constant) and axis.value == 1
                if asked and number not in asked and not one and flow.kinds("store", "atomic"):
                    grave = None if any(_adds(one) for one in flow.kinds("atomic")) else Severity.MEDIUM
                    message = f"{flow.name} never asks for axis {number}: its programs do the same work again"
                    yield Hit(axis, message, grave)


def _literal(node: ast.expr) -> int | None:
    call = node if isinstance(node, ast.Call) else None
    given = [*call.args, *(one.value for one in call.keywords)] if call is not None else []
    first = given[0] if given else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, int) else None


def _helpers(context: Context, flow: Flow) -> bool:
    """Whether it calls other kernels, which may ask for the program id themselves."""
    names = {kernel.name for kernel in context.source.kernels}
    calls = (node for node in ast.walk(flow.kernel.node) if isinstance(node, ast.Call))
    return any(not isinstance(call.func, ast.Attribute) and ast.unparse(call.func) in names for call in calls)


@rule(
    "launch-arguments",
    Severity.HIGH,
    Part.CORRECTNESS,
    "a launch does not fit the kernel's parameters",
    why="The call raises a TypeError.",
    repair="Pass each parameter once, and none that the kernel does not have.",
)
def launch_arguments(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for bound in context.launches_of(flow.name):
            if bound.starred or len(context.launches_of(flow.name)) == 0:
                continue
            if bound.surplus:
                yield Hit(bound.launch.call, f"{bound.surplus} arguments too many for {flow.name}")
            missing = [name for name in _required(flow) if name not in bound.arguments]
            missing = [name for name in missing if not context.is_set_apart(flow, name)]
            if missing and not _opaque(context, flow):
                yield Hit(bound.launch.call, f"{flow.name} needs {', '.join(missing)}")


def _required(flow: Flow) -> list[str]:
    arguments = flow.kernel.node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    without = positional[: len(positional) - len(arguments.defaults)]
    return without + [a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]


def _opaque(context: Context, flow: Flow) -> bool:
    """Whether decorators may pass parameters that cannot be read off: made elsewhere, or by others' decorators."""
    tuning = context.tunings.get(flow.name)
    known = {"triton.jit", "triton.autotune", "triton.heuristics"}
    if any(name not in known for name in flow.kernel.decorators) or flow.kernel.owner is not None:
        return True
    heuristics = "triton.heuristics" in flow.kernel.decorators and not context.computed.get(flow.name)
    return heuristics or (tuning is not None and not tuning.names and not tuning.configurations)


@rule(
    "do-not-specialize-constexpr",
    Severity.HIGH,
    Part.PRACTICE,
    "a constexpr named in do_not_specialize",
    why="Since Triton 3.7.1 that is an error when it is compiled; before, it was ignored.",
    repair="Leave it out of do_not_specialize, or make it an ordinary argument.",
)
def unspecialized_constexpr(context: Context) -> Iterator[Hit]:
    refused = context.language is not None and context.language.release >= (3, 7, 1)
    for flow in context.flows:
        for decorator in flow.kernel.node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "do_not_specialize" and isinstance(keyword.value, (ast.List, ast.Tuple)):
                    named = {one.value for one in keyword.value.elts if isinstance(one, ast.Constant)}
                    for name in sorted(flow.constexprs & {str(one) for one in named}):
                        yield Hit(decorator, f"{name} is a constexpr", None if refused else Severity.MEDIUM)
