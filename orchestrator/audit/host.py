"""What host code does around the kernels: what its names stand for, and what each launch passes.

Owns the resolving of host expressions within one function and the module; does not follow values through calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.source import Function, Launch, Source, is_demo

OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "warmup"}
ALLOCATIONS = {
    "torch.empty", "torch.zeros", "torch.ones", "torch.full", "torch.empty_like", "torch.zeros_like",
    "torch.ones_like", "torch.full_like", "torch.empty_strided", "torch.rand", "torch.randn",
}  # fmt: skip
NEW = {"new_empty", "new_zeros", "new_full", "new_ones", "new_empty_strided"}


@dataclass
class Scope:
    """A host function (None: the module itself) and what its names are assigned."""

    function: Function | None
    parameters: tuple[str, ...]
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    sizes: set[str] = field(default_factory=set)  # names unpacked from a shape
    outer: Scope | None = None

    def meanings(self, name: str) -> list[ast.expr]:
        """The expressions that a name is assigned, here or in the module."""
        if name in self.assigned or name in self.parameters:
            return self.assigned.get(name, [])
        return self.outer.meanings(name) if self.outer is not None else []

    def is_size(self, node: ast.expr, known: dict[str, bool] | None = None) -> bool:
        """Whether it is a tensor's size, as the source says. `known` are the names looked at: some name themselves."""
        known = {} if known is None else known
        match node:
            case ast.Name(id=name):
                if name not in known:
                    known[name] = name in self.sizes
                    others = (one for one in self.meanings(name) if not isinstance(one, ast.Name))
                    known[name] = known[name] or any(self.is_size(one, known) for one in others)
                return known[name]
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
            case ast.Call(func=ast.Attribute(attr="size" | "numel")):
                return True
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.is_size(left, known) and self.is_size(right, known)
        return False


@dataclass(frozen=True)
class Bound:
    """A launch: which parameter gets which expression, and the grid."""

    launch: Launch
    kernel: Function
    scope: Scope
    arguments: Mapping[str, ast.expr]
    surplus: int  # positional arguments that have no parameter
    unknown: tuple[str, ...]  # keywords that name none
    starred: bool

    @property
    def grid(self) -> list[ast.expr]:
        """The axes of the grid, where they are written out; through a name, a lambda or a function."""
        return _axes(self.launch.grid, self.scope, 0)


def host_scopes(source: Source) -> list[Scope]:
    """The module's scope first, then one for each host function."""
    module = Scope(None, ())
    _collect(module, [node for node in source.tree.body if not is_demo(node)])
    scopes = [module]
    for function in source.host_functions:
        arguments = function.node.args
        names = tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
        scope = Scope(function, names, outer=module)
        _collect(scope, function.node.body)
        scopes.append(scope)
    return scopes


def bound_launches(source: Source, scopes: list[Scope]) -> list[Bound]:
    """Every launch of a kernel of this file, with its arguments by parameter."""
    demo = {node for top in source.tree.body if is_demo(top) for node in ast.walk(top)}
    found = []
    for launch in source.launches:
        kernel = next((one for one in source.kernels if one.name == launch.kernel), None)
        if kernel is not None and launch.call not in demo:
            found.append(_bound(launch, kernel, _scope_of(launch.call, scopes)))
    return found


def body_nodes(scope: Scope) -> Iterator[ast.AST]:
    """Every node of a host function's body; inner functions included."""
    if scope.function is not None:
        for statement in scope.function.node.body:
            yield from ast.walk(statement)


def allocation(node: ast.expr, source: Source) -> str:
    """The name of the allocating call that this is, or ""."""
    if not isinstance(node, ast.Call):
        return ""
    dotted = source.dotted(node.func)
    if dotted in ALLOCATIONS:
        return dotted.removeprefix("torch.")
    if isinstance(node.func, ast.Attribute) and node.func.attr in NEW:
        return node.func.attr
    return ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """A keyword argument of a call."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def _bound(launch: Launch, kernel: Function, scope: Scope) -> Bound:
    declared = kernel.node.args
    names = [a.arg for a in (*declared.posonlyargs, *declared.args)]
    every = {*names, *(a.arg for a in declared.kwonlyargs)}
    starred = any(isinstance(a, ast.Starred) for a in launch.call.args) or any(
        k.arg is None for k in launch.call.keywords
    )
    arguments = dict(zip(names, launch.call.args, strict=False))
    arguments |= {k.arg: k.value for k in launch.call.keywords if k.arg in every and k.arg}
    unknown = tuple(k.arg for k in launch.call.keywords if k.arg and k.arg not in every and k.arg not in OPTIONS)
    return Bound(launch, kernel, scope, arguments, max(0, len(launch.call.args) - len(names)), unknown, starred)


def _scope_of(node: ast.AST, scopes: list[Scope]) -> Scope:
    """The innermost function that the node lies in."""
    holding = [scope for scope in scopes[1:] if any(one is node for one in body_nodes(scope))]
    return max(holding, key=lambda scope: scope.function.node.lineno if scope.function else 0, default=scopes[0])


def _collect(scope: Scope, body: list[ast.stmt]) -> None:
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Assign(targets=[target], value=value):
                    _assign(scope, target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    _assign(scope, target, value)
                case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                    _assign(scope, target, ast.BinOp(ast.Name(name, ast.Load()), op, value))


def _assign(scope: Scope, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name):
        scope.assigned.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple):
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        shape = isinstance(value, ast.Attribute) and value.attr == "shape"
        shape = shape or (isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".size"))
        for number, one in enumerate(target.elts):
            if isinstance(one, ast.Name):
                if shape:
                    scope.sizes.add(one.id)
                scope.assigned.setdefault(one.id, []).append(parts[number] if parts else value)


def _axes(node: ast.expr, scope: Scope, depth: int) -> list[ast.expr]:
    match node:
        case ast.Tuple(elts=elts):
            return list(elts)
        case ast.Lambda(body=body):
            return _axes(body, scope, depth)
        case ast.Name(id=name) if depth < 3:
            meanings = scope.meanings(name)
            return _axes(meanings[0], scope, depth + 1) if len(meanings) == 1 else []
    return []
