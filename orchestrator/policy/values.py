"""What a host expression may evaluate to, as far as the policy cares.

Owns the lattice (Value), the containers' contents (Heap) and the scopes of names. Owns no walk over a file.
A Value says which kinds are possible and what the value may refer to; joining only adds, so a fixpoint exists.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from orchestrator.source import is_demo

TENSOR, CACHED, ADDRESS, PLAIN = 1, 2, 4, 8  # CACHED: outlives the call; ADDRESS: comes from data_ptr()

Callable_: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Ref(NamedTuple):
    """Something a value refers to: kind is one of name, builtin, def, kernel, launcher, class, inst, ctx, box, meta,
    method, guard, manager, pass, partial, super. shift counts the parameters that are bound already."""

    kind: str
    key: Hashable
    shift: int = 0


class Value(NamedTuple):
    """The possible kinds, as bits, and the possible referents. The empty value means: not computed yet."""

    kinds: int = 0
    refs: frozenset[Ref] = frozenset()

    def join(self, other: Value) -> Value:
        """Either of the two."""
        if self == other or not (other.kinds or other.refs):
            return self
        return Value(self.kinds | other.kinds, self.refs | other.refs)

    def of(self, kind: str) -> list[Ref]:
        """The referents of one kind."""
        return [ref for ref in self.refs if ref.kind == kind]

    @property
    def tensor(self) -> bool:
        """Whether it may be a tensor."""
        return bool(self.kinds & TENSOR)


EMPTY = Value()
PLAIN_VALUE = Value(PLAIN)
TENSOR_VALUE = Value(TENSOR)


def refer(kind: str, key: Hashable, shift: int = 0) -> Value:
    """A plain value that refers to one thing."""
    return Value(PLAIN, frozenset({Ref(kind, key, shift)}))


def join(values: Iterable[Value]) -> Value:
    """Any of them."""
    out = EMPTY
    for value in values:
        out = out.join(value)
    return out


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call, evaluated. star and double hold the elements of *args and **kwargs."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    star: Value = EMPTY
    double: Value = EMPTY

    @property
    def first(self) -> Value:
        """The first positional argument."""
        return self.positional[0] if self.positional else self.star

    def all(self) -> list[Value]:
        """Every argument."""
        return [*self.positional, *(value for _, value in self.keywords), self.star, self.double]


@dataclass
class Heap:
    """Contents of containers, one entry for each place that builds one. Slot None holds what has no known key."""

    slots: dict[Ref, dict[Hashable, Value]] = field(default_factory=dict)
    persistent: set[Ref] = field(default_factory=set)
    changed: bool = False

    def box(self, key: Hashable, contents: dict[Hashable, Value]) -> Value:
        """The container built at `key`, with these contents added."""
        value = refer("box", key)
        for slot, content in contents.items():
            self.store(value, slot, content)
        for ref in value.refs:
            self.slots.setdefault(ref, {})
        return value

    def store(self, target: Value, slot: Hashable, content: Value) -> None:
        """Put content into every container that target may be."""
        for ref in target.of("box"):
            slots = self.slots.setdefault(ref, {})
            old = slots.get(slot, EMPTY)
            new = old.join(content)
            if new != old:
                slots[slot] = new
                self.changed = True
            if ref in self.persistent:
                self.persist(content)

    def copy(self, source: Value, target: Value) -> None:
        """Put what source holds into target, slot by slot."""
        for ref in source.of("box"):
            for slot, content in list(self.slots.get(ref, {}).items()):
                self.store(target, slot, kept(content) if ref in self.persistent else content)

    def persist(self, value: Value) -> None:
        """Mark containers, and what they hold, as outliving the call."""
        pending = value.of("box")
        while pending:
            ref = pending.pop()
            if ref not in self.persistent:
                self.persistent.add(ref)
                self.changed = True
                pending += join(self.slots.get(ref, {}).values()).of("box")

    def load(self, value: Value, slot: Hashable = None) -> Value:
        """What a container holds at a slot; at None, anything it holds."""
        return join(self._loads(value, slot))

    def _loads(self, value: Value, slot: Hashable) -> Iterator[Value]:
        for ref in value.of("box"):
            slots = self.slots.get(ref, {})
            found = join(slots.values()) if slot is None else slots.get(slot, EMPTY).join(slots.get(None, EMPTY))
            yield kept(found) if ref in self.persistent else found

    def holds(self, value: Value, kind: int) -> bool:
        """Whether value is, or holds at any depth, something of a kind."""
        seen: set[Ref] = set()
        pending = [value]
        while pending:
            current = pending.pop()
            if current.kinds & kind:
                return True
            for ref in current.of("box"):
                if ref not in seen:
                    seen.add(ref)
                    contents = list(self.slots.get(ref, {}).values())
                    pending += map(kept, contents) if ref in self.persistent else contents
        return False


def kept(value: Value) -> Value:
    """The value as read back from something that outlives the call."""
    return Value(value.kinds | CACHED, value.refs) if value.tensor else value


def fresh(value: Value) -> Value:
    """The value as a new tensor."""
    return Value(value.kinds & ~CACHED, value.refs)


@dataclass(eq=False)
class Scope:
    """The names that one module, function, class or comprehension binds."""

    node: ast.AST
    parent: Scope | None
    names: set[str] = field(default_factory=set)

    @property
    def is_class(self) -> bool:
        """Whether functions inside cannot see its names."""
        return isinstance(self.node, ast.ClassDef)

    def resolve(self, name: str) -> Scope | None:
        """The scope that binds a name seen from here; None for a builtin."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None

    @property
    def top(self) -> bool:
        """Whether it is the module's, or that of a block under `__main__`."""
        return isinstance(self.node, ast.Module | ast.If)

    def function(self) -> Scope:
        """The nearest scope that is not a comprehension."""
        scope = self
        while isinstance(scope.node, Comprehension) and scope.parent is not None:
            scope = scope.parent
        return scope


def scopes(tree: ast.Module) -> dict[ast.AST, Scope]:
    """The scope of every node that opens one."""
    found: dict[ast.AST, Scope] = {}
    _open(tree, None, found)
    return found


def parameters(node: Callable_) -> list[ast.arg]:
    """All parameters, in order, without *args and **kwargs."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _open(node: ast.AST, parent: Scope | None, found: dict[ast.AST, Scope]) -> None:
    scope = found[node] = Scope(node, parent)
    if isinstance(node, Callable_):
        extra = [arg for arg in (node.args.vararg, node.args.kwarg) if arg]
        scope.names |= {arg.arg for arg in [*parameters(node), *extra]}
    for child in inner(node):
        _bind(child, scope, found)


def inner(node: ast.AST) -> list[ast.AST]:
    """The children that are evaluated inside a node's own scope."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return list(node.body)
    return list(ast.iter_child_nodes(node))


def _outer(node: ast.AST) -> list[ast.AST]:
    """The children of a scope's node that are evaluated outside it: decorators, defaults, bases."""
    own = {id(child) for child in inner(node)}
    return [child for child in ast.iter_child_nodes(node) if id(child) not in own]


def _bind(node: ast.AST, scope: Scope, found: dict[ast.AST, Scope]) -> None:
    scope.names |= bound_by(node) if not isinstance(node, ast.NamedExpr) else set()
    if isinstance(node, ast.NamedExpr):
        scope.function().names.add(node.target.id)
    if isinstance(node, Callable_ | ast.ClassDef | Comprehension):
        for child in _outer(node):
            _bind(child, scope, found)
        _open(node, scope, found)
        return
    if is_demo(node) and isinstance(scope.node, ast.Module):  # it never runs: nothing else sees what it binds
        _open(node, scope, found)
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.NamedExpr) and child is node.target):
            _bind(child, scope, found)


def bound_by(node: ast.AST) -> set[str]:
    """The names that this one node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names):
            return {alias.asname or alias.name.split(".")[0] for alias in names}
        case ast.ImportFrom(names=names):
            return {alias.asname or alias.name for alias in names}
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
        case ast.MatchMapping(rest=str(name)):
            return {name}
    return set()
