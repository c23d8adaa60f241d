"""Which host values may be tensors: a flow-insensitive inference over the whole file, functions and calls included.

Owns the fixpoint: names, parameters, results, attributes, containers, and who calls or launches what. It reads the
tree only. Owns no rule: `host` and its neighbours read the values found here. What statements, expressions and calls
give is in `statements`, `evaluate` and `calls`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Hashable, Iterable

from orchestrator.policy import access, calls, evaluate, names
from orchestrator.policy.statements import STATEMENTS
from orchestrator.policy.values import (
    EMPTY,
    PLAIN,
    PLAIN_VALUE,
    TENSOR,
    TENSOR_VALUE,
    Arguments,
    Callable_,
    Heap,
    Scope,
    Value,
    join,
    kept,
    parameters,
    refer,
    scopes,
)
from orchestrator.source import Class, Function, Source, is_demo

MAX_PASSES = 24  # honest files need 3 to 6
MAX_CONTAINERS = 1500
# Of an entry's parameters without annotation; none of them is a tensor in any public op.
SCALAR_NAMES = names.words(
    """dim dims axis eps epsilon dtype device layout memory_format size shape normalized_shape keepdim groups num_groups
    causal is_causal stride padding dilation kernel_size reduction training inplace"""
)


class Inference:
    """The state of the fixpoint; after `run`, the answers."""

    def __init__(self, source: Source, entry: str, tensors: frozenset[str] | None) -> None:
        self.source = source
        self.entry = entry
        self.entry_tensors = tensors
        self.heap: Heap = Heap()
        self.scopes = scopes(source.tree)
        self.module = self.scopes[source.tree]
        self.functions: dict[ast.AST, Function] = {f.node: f for f in source.functions}
        self.classes: dict[str, Class] = {c.name: c for c in source.classes}
        self.operators = _operators(source)
        self.env: dict[tuple[Scope, str], Value] = {}
        self.values: dict[ast.expr, Value] = {}
        self.returns: dict[ast.AST, Value] = {}
        self.yields: dict[ast.AST, Value] = {}
        self.attributes: dict[tuple[str, str], Value] = {}
        self.kernel_arguments: dict[str, Value] = {}
        self.decorations: dict[ast.AST, list[Value]] = {}
        self.kernel_parameters: dict[tuple[ast.AST, str], Value] = {}
        self.partials: dict[ast.AST, tuple[Value, Arguments]] = {}
        self.settled = True  # False: the values never stopped changing, and prove nothing
        self.passes = 0
        self.at_import: set[ast.AST] = set()
        self.unfolding: set[ast.AST] = set()
        self.edges: dict[ast.AST, set[ast.AST]] = {}
        self.launches: dict[ast.AST, set[tuple[ast.AST, ast.Call]]] = {}
        self.handed: set[ast.AST] = set()  # functions given to torch or triton, which call them
        self.bound: set[ast.AST] = set()  # functions whose parameters have values
        self.current: ast.AST = source.tree
        self.changed = False
        self.final = False  # all parameters are known: what is still unknown stays so

    # --- fixpoint

    def run(self) -> None:
        """Evaluate until nothing changes; then once more with the parameters of functions that nobody calls."""
        self._root()
        self._settle()
        for function in self.source.host_functions:
            if function.node not in self.bound:
                self.bind_declared(function.node)
        self._settle()
        self.final = True
        self._settle()

    def _settle(self) -> None:
        for _ in range(MAX_PASSES):
            self.changed = self.heap.changed = False
            self.current = self.source.tree
            self.at_import = self.reachable(self.source.tree)
            self.execute(self.source.tree.body, self.module)
            for function in self.source.host_functions:
                self.current = function.node
                self.execute(function.node.body, self.scopes[function.node])
            self.passes += 1
            if len(self.heap.slots) > MAX_CONTAINERS:
                break
            if not (self.changed or self.heap.changed):
                return
        self.settled = False

    def _root(self) -> None:
        entry = self.source.function(self.entry)
        if entry is not None:
            self.bind_declared(entry.node)
        for item in self.source.classes:
            if names.AUTOGRAD & set(item.bases):
                self._root_autograd(item)

    def _root_autograd(self, item: Class) -> None:
        """autograd calls backward with gradients, and gives every method its ctx."""
        methods = {m.name: m for m in item.node.body if isinstance(m, ast.FunctionDef)}
        for name, method in methods.items():
            if parameters(method) and not (name == "forward" and "setup_context" in methods):
                self.bind(method, parameters(method)[0].arg, refer("ctx", item.name))
        self.handed |= set(methods.values())
        if "backward" in methods:
            self.bound.add(methods["backward"])
            for arg in parameters(methods["backward"])[1:]:
                self.bind(methods["backward"], arg.arg, TENSOR_VALUE)
            self._bind_rest(methods["backward"].args.vararg, methods["backward"], TENSOR_VALUE)

    def reachable(self, *roots: ast.AST) -> set[ast.AST]:
        """Functions that the roots may run, roots included."""
        pending = list(roots)
        seen: set[ast.AST] = set()
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending += self.edges.get(node, ())
        return seen

    # --- names and parameters

    def build(self, key: Hashable, contents: dict[Hashable, Value]) -> Value:
        """A container built here; one that is built while the file is imported outlives every call."""
        value = self.heap.box(key, contents)
        if self.current in self.at_import:
            self.heap.persist(value)
        return value

    def put(self, scope: Scope, name: str, value: Value) -> None:
        """Join a value into a name."""
        old = self.env.get((scope, name), EMPTY)
        new = old.join(value)
        if new != old:
            self.env[scope, name] = new
            self.changed = True

    def get(self, name: str, scope: Scope) -> Value:
        """What a name may be, seen from a scope."""
        home = scope.resolve(name)
        if home is None:
            return refer("builtin", name)
        value = self.env.get((home, name), EMPTY)
        return kept(value) if home is self.module else value

    def bind(self, node: Callable_, name: str, value: Value) -> None:
        """Join a value into a parameter."""
        self.put(self.scopes[node], name, value)

    def defaults(self, node: Callable_) -> list[tuple[ast.arg, ast.expr | None]]:
        """Every parameter with its default."""
        positional = [*node.args.posonlyargs, *node.args.args]
        padding: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
        pairs = list(zip(positional, padding + list(node.args.defaults), strict=True))
        return pairs + list(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))

    def bind_defaults(self, node: Callable_, scope: Scope) -> None:
        """Evaluate the defaults; what they build is built once and outlives the call."""
        for arg, default in self.defaults(node):
            if default is not None:
                value = self.eval(default, scope)
                self.heap.persist(value)
                self.bind(node, arg.arg, kept(value))

    def bind_self(self, method: Function, owner: str) -> None:
        """Bind the first parameter of a method to the instance, or to the class."""
        first = parameters(method.node)[:1]
        if first and "staticmethod" not in method.decorators:
            kind = "class" if "classmethod" in method.decorators else "inst"
            self.bind(method.node, first[0].arg, refer(kind, owner))

    def bind_declared(self, node: Callable_) -> None:
        """Give the parameters what their annotations, defaults and use say; for functions called from outside."""
        self.bound.add(node)
        function = self.functions.get(node)
        method = function is not None and function.owner is not None and "staticmethod" not in function.decorators
        for arg, default in self.defaults(node)[int(method) :]:
            self.bind(node, arg.arg, self.declared(node, arg, default))
        for rest in (node.args.vararg, node.args.kwarg):
            known = self.entry_tensors is None or (rest is not None and rest.arg in self.entry_tensors)
            self._bind_rest(rest, node, TENSOR_VALUE if known and self._is_entry(node) else PLAIN_VALUE)
        if function is not None and function.owner is not None:
            self.bind_self(function, function.owner)

    def _bind_rest(self, arg: ast.arg | None, node: Callable_, element: Value) -> None:
        if arg is not None:
            self.bind(node, arg.arg, self.heap.box(arg, {None: element}))

    def _is_entry(self, node: ast.AST) -> bool:
        function = self.functions.get(node)
        return function is not None and function.name == self.entry and function.top_level

    def declared(self, node: Callable_, arg: ast.arg, default: ast.expr | None) -> Value:
        """What a parameter is when no call says it. Use as a tensor outweighs an annotation, which may be a lie."""
        is_entry = self._is_entry(node)
        if arg.arg in evaluate.used_as_tensor(node):
            return TENSOR_VALUE
        container = arg.annotation is not None and _is_container(arg.annotation)
        if is_entry and self.entry_tensors is not None and not container:
            return TENSOR_VALUE if arg.arg in self.entry_tensors else PLAIN_VALUE
        if arg.arg == "ctx":
            return refer("ctx", "")
        if arg.annotation is not None:
            if _is_container(arg.annotation):
                return self.heap.box(
                    arg, {None: TENSOR_VALUE if "Tensor" in ast.unparse(arg.annotation) else PLAIN_VALUE}
                )
            return TENSOR_VALUE if "Tensor" in ast.unparse(arg.annotation) else PLAIN_VALUE
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            return PLAIN_VALUE
        if is_entry and arg.arg not in SCALAR_NAMES:
            return Value(TENSOR | PLAIN) if default is not None else TENSOR_VALUE
        return PLAIN_VALUE

    def escape(self, value: Value, kernel: ast.AST | None = None) -> None:
        """A function given to torch or triton: it is called with the launch's arguments, or not at all."""
        meta = refer("meta", kernel)
        for ref in value.of("partial"):
            if isinstance(ref.key, ast.AST) and ref.key not in self.unfolding:
                self.unfolding.add(ref.key)
                target, early = self.partials[ref.key]
                self.call(target, early, self.current)
                self.escape(target, kernel)
                self.unfolding.remove(ref.key)
        called = [(str(ref.key), self.method(str(ref.key), "__call__")) for ref in value.of("inst")]
        for owner, method in called:
            if method is not None:
                self.bind_self(method, owner)
                value = value.join(refer("def", method.node, 1))
        for ref in value.of("def"):
            node = ref.key
            assert isinstance(node, Callable_)
            self.handed.add(node)
            self.bound.add(node)
            for arg in parameters(node)[ref.shift :]:
                named = meta.join(self.kernel_arguments.get(arg.arg, EMPTY))
                self.bind(node, arg.arg, refer("ctx", "") if arg.arg == "ctx" else named)
            for rest in (node.args.vararg, node.args.kwarg):
                if rest is not None:
                    self.bind(node, rest.arg, meta)

    # --- calls

    def edge(self, callee: ast.AST) -> None:
        """The current function may run callee."""
        self.edges.setdefault(self.current, set()).add(callee)

    def call(self, function: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling a value gives."""
        return calls.call(self, function, arguments, node)

    def launch(self, kernel: ast.AST, arguments: Arguments, node: ast.AST) -> None:
        """Record a launch, and which of the kernel's parameters hold tensors."""
        if isinstance(node, ast.Call):
            self.launches.setdefault(self.current, set()).add((kernel, node))
        assert isinstance(kernel, Callable_)
        order = [arg.arg for arg in parameters(kernel)]
        pairs = [*zip(order, arguments.positional, strict=False), *arguments.keywords]
        if arguments.star.tensor:
            pairs += [(name, arguments.star) for name in order[len(arguments.positional) :]]
        for name, value in pairs:
            old = self.kernel_parameters.get((kernel, name), EMPTY)
            new = self.kernel_parameters[kernel, name] = old.join(value)
            self.kernel_arguments[name] = self.kernel_arguments.get(name, EMPTY).join(new)
            self.changed |= new != old

    # --- attributes of the file's classes

    def set_attribute(self, owner: str, name: str, value: Value) -> None:
        """Join a value into an attribute of a class, its instances or its ctx."""
        old = self.attributes.get((owner, name), EMPTY)
        new = old.join(value)
        if new != old:
            self.attributes[owner, name] = new
            self.changed = True

    def lineage(self, owner: str) -> list[str]:
        """A class of the file and those of the file that it derives from, nearest first."""
        found = [owner]
        while bases := [base for base in self.classes[found[-1]].bases if base in self.classes and base not in found]:
            found.append(bases[0])
        return found

    def bases(self, owner: str) -> set[str]:
        """What a class derives from, by way of the file's own classes too."""
        return {base for name in self.lineage(owner) for base in self.classes[name].bases}

    def held(self, owner: str, name: str) -> Value:
        """What an attribute of a class or its instances was given, anywhere in its line."""
        return join(self.attributes.get((one, name), EMPTY) for one in self.lineage(owner))

    def method(self, owner: str, name: str) -> Function | None:
        """A method of a class of the file, its own or the nearest that it inherits."""
        named = {f.owner: f for f in reversed(self.source.functions) if f.owner is not None and f.name == name}
        return next((named[one] for one in self.lineage(owner) if one in named), None)

    def enumeration(self, owner: str) -> bool:
        """Whether a class of the file is an Enum: calling or indexing it gives a member."""
        return bool(names.ENUMS & set(self.classes[owner].bases))

    def of_error(self, owner: str, name: str) -> bool:
        """Whether an attribute is one that an error of the file has from its builtin base: `.args`, `.obj`."""
        errors = names.ERRORS & self.bases(owner)
        return any(hasattr(getattr(builtins, base), name) for base in errors)

    def fields(self, owner: str) -> list[str]:
        """The annotated names of a class, in order: the fields of a dataclass or a NamedTuple."""
        body = [s for one in reversed(self.lineage(owner)) for s in self.classes[one].node.body]
        found = (s.target.id for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name))
        return list(dict.fromkeys(found))

    # --- statements

    def execute(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        """Evaluate statements in a scope, nested blocks included, bodies of functions excluded."""
        for node in body:
            if (scope is self.module and is_demo(node)) or len(self.heap.slots) > MAX_CONTAINERS:
                continue
            handler = STATEMENTS.get(type(node))
            if handler is not None:
                handler(self, node, scope)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr) and handler is None:
                    self.eval(child, scope)
                elif isinstance(child, ast.stmt) and not isinstance(node, _OPENS_SCOPE):
                    self.execute([child], scope)
                elif isinstance(child, ast.ExceptHandler | ast.match_case):
                    if isinstance(child, ast.ExceptHandler) and child.name:
                        caught = self.build(child, {None: Value(TENSOR | PLAIN)})  # .args may give back a tensor
                        self.put(scope.function(), child.name, caught.join(refer("record", child)))
                    self.execute(child.body, scope)

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """Evaluate an expression and remember the value."""
        value = self.values[node] = evaluate.evaluate(self, node, scope)
        return value

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a value to a target of any form."""
        match target:
            case ast.Name(id=name):
                home = scope.function() if name not in scope.names else scope
                self.put(home, name, value)
                self.values[target] = value
            case ast.Starred(value=inner):
                self.assign(inner, self.heap.box(target, {None: value}), scope)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, value, scope)
            case ast.Attribute(value=owner, attr=name):
                self._store_attribute(self.eval(owner, scope), name, value)
            case ast.Subscript(value=owner, slice=index):
                self.eval(index, scope)
                self.store_item(owner, self.eval(owner, scope), evaluate.constant(index), value, scope)

    def _unpack(self, elements: list[ast.expr], value: Value, scope: Scope) -> None:
        starred = any(isinstance(element, ast.Starred) for element in elements)
        for index, element in enumerate(elements):
            self.assign(element, access.item(self, value, None if starred else index), scope)

    def _store_attribute(self, owner: Value, name: str, value: Value) -> None:
        for ref in owner.refs:
            if ref.kind == "ctx":
                self.set_attribute(f"ctx {ref.key}", name, value)
            elif ref.kind in ("inst", "class"):
                self.heap.persist(value)
                self.set_attribute(str(ref.key), name, kept(value))

    def store_item(self, owner: ast.expr, target: Value, slot: Hashable, value: Value, scope: Scope) -> None:
        """Put a value into a container; through a name of another function, it outlives the call."""
        if isinstance(owner, ast.Name):
            home = scope.resolve(owner.id)
            if home is not None and home is not scope.function() and home is not scope:
                self.heap.persist(target)
        self.heap.store(target, slot, value)


_OPENS_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_container(annotation: ast.expr) -> bool:
    """`list[...]`, `Sequence[...]`, `typing.Tuple[...]`."""
    root = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    name = root.attr if isinstance(root, ast.Attribute) else getattr(root, "id", "")
    return name.lower() in ("list", "tuple", "sequence", "iterable", "dict", "mapping")


def _operators(source: Source) -> dict[str, ast.AST]:
    """Functions registered with torch.library, by the path a caller uses: torch.ops.ns.name."""
    found: dict[str, ast.AST] = {}
    for function in source.functions:
        for decorator in function.node.decorator_list:
            if isinstance(decorator, ast.Call) and source.dotted(decorator.func) in (
                "torch.library.custom_op",
                "torch.library.triton_op",
            ):
                label = decorator.args[0] if decorator.args else None
                if isinstance(label, ast.Constant) and isinstance(label.value, str):
                    found["torch.ops." + label.value.replace("::", ".")] = function.node
    return found
