"""Rules about counting: what outlives the call must not change with every call.

A count of calls can decide, after more of them than any judge makes, that nothing need be computed. Honest files keep
what is computed once for its key. Owns what counting looks like in the text: a container of the module that grows
unguarded, an element that is stored from itself, an iterator that outlives the call (each use of it advances it).
Cannot see a count that is kept in device memory, or behind other names; the judge's `steady_state` compares what a
file keeps, the positions of its iterators among it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.policy import names
from orchestrator.policy.check import Check, Place, Remark
from orchestrator.policy.values import Callable_
from orchestrator.records import Finding

_GROWS = names.words("append extend insert appendleft")
_ITERATORS = names.words("iter map filter zip enumerate reversed")
_ADVICE = "keep nothing but what is computed once for its key; every call does the same"


def counted(check: Check, node: ast.FunctionDef, place: Place) -> Iterator[Remark]:
    """A function of the host, with the conditions under which its statements run."""
    if not place.demo and node not in {kernel.node for kernel in check.source.kernels}:
        yield from _block(check, node, node.body, frozenset())


def _block(check: Check, function: ast.FunctionDef, body: list[ast.stmt], guarded: frozenset[str]) -> Iterator[Remark]:
    """Statements in a row: after `if key in KEPT: return ...` what follows runs once for a key."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _expressions(check, function, statement.test, guarded)
            yield from _block(check, function, statement.body, guarded | _absent(statement.test))
            yield from _block(check, function, statement.orelse, guarded | _present(statement.test))
            if isinstance(statement.body[-1], ast.Return | ast.Raise):
                guarded |= _present(statement.test)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _expressions(check, function, statement, guarded)
            for name in ("body", "orelse", "finalbody"):
                yield from _block(check, function, getattr(statement, name, []), guarded)


def _expressions(check: Check, function: ast.FunctionDef, node: ast.AST, guarded: frozenset[str]) -> Iterator[Remark]:
    """What one statement does itself, without the statements in it."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        name = _counting(current)
        grows = name and name not in guarded and _kept(check, function, name)
        if grows or _advances(check, function, current) or _steps(check, function, current):
            yield _finding(check, current, name or ast.unparse(current))
        pending += [child for child in ast.iter_child_nodes(current) if not isinstance(child, ast.stmt)]


def _counting(node: ast.AST) -> str:
    """The name of the container that this node changes by what it is already; "" for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _GROWS:
            return _root(owner)
        case ast.AugAssign(target=ast.Subscript() as target):
            return _root(target)
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            name = _root(target)
            sums = [part for part in ast.walk(value) if isinstance(part, ast.BinOp)]
            return name if any(_mentions(part, name) for part in (*sums, target.slice)) else ""
    return ""


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _kept(check: Check, function: Callable_, name: str) -> bool:
    """Whether the name is a container of the module, or one that was made as a parameter's default."""
    scope = check.inference.scopes[function].resolve(name)
    if scope is check.inference.module:
        value = check.inference.env.get((scope, name))
        return value is not None and bool(value.of("box"))
    made = ast.List | ast.Dict | ast.Call
    return any(arg.arg == name and isinstance(default, made) for arg, default in check.inference.defaults(function))


def _steps(check: Check, function: ast.FunctionDef, node: ast.AST) -> bool:
    """`self.calls += 1` in a method that is not the one that makes `self`."""
    match node:
        case ast.AugAssign(target=ast.Attribute(value=ast.Name() as owner)):
            making = function.name in ("__init__", "__post_init__")
            own = [arg.arg for arg in function.args.args[:1]] == [owner.id]
            return own and not making and bool(check.value(owner).of("inst"))
    return False


def _advances(check: Check, function: Callable_, node: ast.AST) -> bool:
    """Whether the node is a name of the module, or of a parameter, that was made as an iterator."""
    if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
        return False
    scope = check.inference.scopes[function].resolve(node.id)
    made: list[ast.expr | None]
    if scope is check.inference.module:
        made = [value for name, value in _assigned(check.source.tree.body) if name == node.id]
    else:
        made = [default for arg, default in check.inference.defaults(function) if arg.arg == node.id]
    return any(_iterator(check, value) for value in made)


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names that are assigned at the top of the file, each with what it was assigned."""
    for node in body:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
        for inner in ("body", "orelse"):
            if isinstance(node, ast.If | ast.For | ast.Try):
                yield from _assigned(getattr(node, inner, []))


def _iterator(check: Check, made: ast.expr | None) -> bool:
    """Whether an expression makes what is used up by use."""
    if isinstance(made, ast.GeneratorExp):
        return True
    if not isinstance(made, ast.Call):
        return False
    if isinstance(made.func, ast.Name) and made.func.id in _ITERATORS:
        return True
    generators = {ref.key for ref in check.value(made.func).of("def")} & set(check.inference.yields)
    return bool(generators) or check.source.dotted(made.func).startswith("itertools.")


def _absent(test: ast.expr) -> frozenset[str]:
    """The containers that hold nothing for the key where the test is true: `key not in KEPT`, `not KEPT`."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return frozenset().union(*map(_absent, parts))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _present(inner) | ({inner.id} if isinstance(inner, ast.Name) else set())
        case ast.Compare(ops=[ast.NotIn()], comparators=[ast.Name(id=name)]):
            return frozenset({name})
    return frozenset()


def _present(test: ast.expr) -> frozenset[str]:
    """Those that hold something for it: `key in KEPT`, `KEPT`; where the test is false they do not."""
    match test:
        case ast.Name(id=name) | ast.Compare(ops=[ast.In()], comparators=[ast.Name(id=name)]):
            return frozenset({name})
    return frozenset()


def _finding(check: Check, node: ast.AST, name: str) -> Finding:
    return check.forbidden(node, f"{name} outlives the call and changes with every call", _ADVICE)
