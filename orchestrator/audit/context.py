"""What rules read: the facts of a file's kernels and of the host code around them, together.

Owns the questions that need both sides: what a block size can be, which tensor a kernel's parameter is, how a kernel is
tuned. Owns no judgement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.audit import host
from orchestrator.audit.flow import Flow, flow
from orchestrator.audit.host import Bound, Scope
from orchestrator.audit.language import Language
from orchestrator.source import Function, Source

POWERS = {"next_power_of_2"}


@dataclass(frozen=True)
class Extent:
    """One thing that a block size can be."""

    kind: str  # "constant", "power" (of two, by its making), "capped" (a minimum of those), "size", "unknown"
    value: int | None = None


@dataclass(frozen=True)
class Tuning:
    """An autotune decorator."""

    call: ast.Call
    key: tuple[str, ...] | None  # None: not written out
    choices: Mapping[str, frozenset[int]]  # values of the configurations, where they are written out
    names: frozenset[str]  # everything that configurations set
    configurations: int | None  # None: not known
    protected: frozenset[str]  # parameters that are reset or restored
    hooked: bool  # a hook of the author's runs before each


@dataclass(frozen=True)
class Context:
    """A file, read for the rules."""

    source: Source
    scopes: tuple[Scope, ...]
    launches: tuple[Bound, ...]
    flows: tuple[Flow, ...]
    language: Language | None  # of the installed Triton
    tunings: Mapping[str, Tuning] = field(default_factory=dict)  # by kernel
    computed: Mapping[str, Mapping[str, ast.expr]] = field(default_factory=dict)  # heuristics, by kernel

    def launches_of(self, kernel: str) -> list[Bound]:
        """The launches of a kernel that are written with its name; none where two kernels have it: which is meant, the
        order of running says.
        """
        if sum(one.name == kernel for one in self.flows) > 1:
            return []
        return [one for one in self.launches if one.kernel.name == kernel]

    def extents(self, kernel: Flow, name: str) -> list[Extent]:
        """What a kernel's block size can be; empty where nothing is known of it."""
        if name.isdigit():
            return [Extent("constant", int(name))]
        found: list[Extent] = []
        tuning = self.tunings.get(kernel.name)
        if tuning is not None and name in tuning.names:
            return [Extent("constant", value) for value in sorted(tuning.choices.get(name, ()))]
        if name in self.computed.get(kernel.name, {}):
            return [extent(self.computed[kernel.name][name], self.scopes[0])]
        for bound in self.launches_of(kernel.name):
            if name in bound.arguments:
                found.append(extent(bound.arguments[name], bound.scope))
        if not found and name not in kernel.parameters and self.scopes[0].meanings(name):
            found.append(extent(self.scopes[0].meanings(name)[0], self.scopes[0]))
        if not found and (default := _default(kernel, name)) is not None:
            found.append(extent(default, self.scopes[0]))
        return found

    def is_helper(self, kernel: Flow) -> bool:
        """Whether another kernel of the file calls it."""
        others = (one.node for one in self.source.kernels if one.node is not kernel.kernel.node)
        calls = (node for other in others for node in ast.walk(other) if isinstance(node, ast.Call))
        return any(isinstance(call.func, ast.Name) and call.func.id == kernel.name for call in calls)

    def is_set_apart(self, kernel: Flow, name: str) -> bool:
        """Whether configurations or heuristics set this parameter, not the caller."""
        tuning = self.tunings.get(kernel.name)
        return name in self.computed.get(kernel.name, {}) or (tuning is not None and name in tuning.names)


def context(source: Source, language: Language | None) -> Context:
    """Read a file for the rules."""
    scopes = host.host_scopes(source)
    launches = host.bound_launches(source, scopes)
    flows = tuple(flow(kernel, source, _dtypes(kernel, launches, source)) for kernel in source.kernels)
    tunings, computed = {}, {}
    for kernel in source.kernels:
        for node in kernel.node.decorator_list:
            name = source.dotted(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name.endswith("autotune"):
                tunings[kernel.name] = _tuning(node, scopes[0], source)
            elif isinstance(node, ast.Call) and name.endswith("heuristics"):
                computed[kernel.name] = _heuristics(node, scopes[0])
    return Context(source, tuple(scopes), tuple(launches), flows, language, tunings, computed)


def _default(kernel: Flow, name: str) -> ast.expr | None:
    """What a parameter is where no launch gives it."""
    arguments = kernel.kernel.node.args
    every = [*arguments.posonlyargs, *arguments.args]
    given = dict(zip((one.arg for one in reversed(every)), reversed(arguments.defaults), strict=False))
    given |= {
        one.arg: default for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default
    }
    return given.get(name)


def extent(node: ast.expr, scope: Scope, depth: int = 0) -> Extent:
    """What a block size's expression can be."""
    match node:
        case ast.Constant(value=int() as value):
            return Extent("constant", value)
        case ast.BinOp(left=ast.Constant(value=int() as left), op=ast.LShift(), right=ast.Constant(value=int() as by)):
            return Extent("constant", left << by if by < 64 else None)
        case ast.Lambda(body=body):
            return extent(body, scope, depth)
        case ast.Call(func=func, args=arguments):
            name = ast.unparse(func).rsplit(".", 1)[-1]
            if name in POWERS:
                return Extent("power")
            if name in ("constexpr", "int") and arguments:
                return extent(arguments[0], scope, depth)
            if name in ("min", "max") and arguments:
                return _extreme(name, [extent(one, scope, depth) for one in arguments])
        case ast.Name(id=name) if depth < 4:
            meanings = scope.meanings(name)
            if len(meanings) == 1 and not isinstance(meanings[0], ast.Attribute):
                inner = extent(meanings[0], scope, depth + 1)
                if inner.kind != "unknown":
                    return inner
    return Extent("size") if scope.is_size(node) else Extent("unknown")


def _extreme(name: str, parts: list[Extent]) -> Extent:
    if any(part.kind not in ("constant", "power", "capped") for part in parts):
        return Extent("unknown")
    constants = [part.value for part in parts if part.kind == "constant" and part.value is not None]
    if any(not is_power(value) for value in constants):
        return Extent("unknown")
    if name == "min":
        return Extent("capped", min(constants, default=None))
    return Extent("power")


def is_power(value: int) -> bool:
    """Whether it is a power of two."""
    return value > 0 and value & (value - 1) == 0


def _dtypes(kernel: Function, launches: list[Bound], source: Source) -> dict[str, str]:
    """Element types of tensors that the host allocates itself, where all launches agree."""
    found: dict[str, set[str]] = {}
    for bound in launches:
        if bound.kernel.name == kernel.name:
            for name, given in bound.arguments.items():
                found.setdefault(name, set()).update(
                    _element_type(node, source) for node in _origins(given, bound.scope, source)
                )
    return {name: next(iter(kinds)) for name, kinds in found.items() if len(kinds) == 1}


def _element_type(node: ast.expr, source: Source) -> str:
    dtype = host.keyword(node, "dtype") if isinstance(node, ast.Call) and host.allocation(node, source) else None
    text = source.dotted(dtype) if dtype is not None else ""
    if not text.startswith("torch."):
        return "input"
    return {"torch.int32": "int"}.get(text, text.removeprefix("torch."))


def _origins(node: ast.expr, scope: Scope, source: Source, depth: int = 0) -> list[ast.expr]:
    """Where a tensor comes from: through names, slices and helpers of the file."""
    if depth > 4:
        return [node]
    if isinstance(node, ast.Subscript):
        return _origins(node.value, scope, source, depth + 1)
    if isinstance(node, ast.Name) and (known := scope.meanings(node.id)):
        return [origin for one in known if one is not node for origin in _origins(one, scope, source, depth + 1)]
    helper = source.function(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    if helper is not None and not helper.kernel:
        calls = (one for one in ast.walk(helper.node) if isinstance(one, ast.Call))
        return [one for one in calls if host.allocation(one, source)] or [node]
    return [node]


def meanings(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """What an argument of a launch can be: itself, or what its name is assigned."""
    if isinstance(node, ast.Name):
        return scope.meanings(node.id) or [node]
    return [node]


def _heuristics(node: ast.Call, module: Scope) -> dict[str, ast.expr]:
    table = node.args[0] if node.args else host.keyword(node, "values")
    if isinstance(table, ast.Name):
        table = next(iter(module.meanings(table.id)), None)
    if not isinstance(table, ast.Dict):
        return {}
    return {key.value: value for key, value in zip(table.keys, table.values, strict=True) if _is_text(key)}  # type: ignore[union-attr]


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _tuning(node: ast.Call, module: Scope, source: Source) -> Tuning:
    configs = host.keyword(node, "configs") or (node.args[0] if node.args else None)
    key = host.keyword(node, "key") or (node.args[1] if len(node.args) > 1 else None)
    trees, written = _configs(configs, module, source)
    choices: dict[str, set[int]] = {}
    names: set[str] = set()
    for tree in trees:
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Config"):
                _choices(call, tree, choices, names)
    protected = [host.keyword(node, name) for name in ("reset_to_zero", "restore_value")]
    return Tuning(
        call=node,
        key=_texts(key),
        choices={name: frozenset(values) for name, values in choices.items()},
        names=frozenset(names),
        configurations=written,
        protected=frozenset(name for one in protected for name in _texts(one) or ()),
        hooked=any(host.keyword(node, name) is not None for name in ("pre_hook", "post_hook"))
        or any("pre_hook" in ast.unparse(tree) for tree in trees)
        or any(one is not None and _texts(one) is None for one in protected),
    )


def _configs(node: ast.expr | None, module: Scope, source: Source) -> tuple[list[ast.AST], int | None]:
    """The trees that make the configurations, and how many there are where they are a list."""
    if isinstance(node, ast.Name):
        node = next(iter(module.meanings(node.id)), None)
    if isinstance(node, ast.List):
        starred = any(isinstance(one, ast.Starred) for one in node.elts)
        return [node], None if starred else len(node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        function = source.function(node.func.id)
        return ([function.node] if function is not None else []), None
    return ([node] if node is not None else []), None


def _choices(call: ast.Call, tree: ast.AST, choices: dict[str, set[int]], names: set[str]) -> None:
    table = call.args[0] if call.args else host.keyword(call, "kwargs")
    if not isinstance(table, ast.Dict):
        return
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            names.add(key.value)
            choices.setdefault(key.value, set()).update(_constants(value, tree))


def _constants(value: ast.expr, tree: ast.AST) -> Iterator[int]:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        yield value.value
    elif isinstance(value, ast.Name):
        for node in ast.walk(tree):
            if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name) and node.target.id == value.id:
                yield from (
                    one.value
                    for one in getattr(node.iter, "elts", [])
                    if isinstance(one, ast.Constant) and isinstance(one.value, int)
                )


def _texts(node: ast.expr | None) -> tuple[str, ...] | None:
    if isinstance(node, (ast.List, ast.Tuple)) and all(_is_text(one) for one in node.elts):
        return tuple(one.value for one in node.elts)  # type: ignore[attr-defined]
    return None
