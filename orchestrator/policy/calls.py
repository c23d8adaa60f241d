"""What one call gives, by what is called: the file's functions, kernels and classes, and allowed names.

Owns one function a kind of callee; builtins and methods are in `methods`.
Names that the rules refuse still get a result here, on the safe side.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from orchestrator.policy import names
from orchestrator.policy.access import iterate
from orchestrator.policy.methods import builtin, contain, method
from orchestrator.policy.values import (
    CACHED,
    EMPTY,
    PLAIN_VALUE,
    TENSOR,
    TENSOR_VALUE,
    Arguments,
    Callable_,
    Ref,
    Value,
    join,
    kept,
    parameters,
    refer,
)

if TYPE_CHECKING:
    from orchestrator.policy.infer import Inference


def call(inf: Inference, function: Value, arguments: Arguments, node: ast.AST) -> Value:
    """The results of all the things that function may be."""
    out = EMPTY
    for ref in function.refs:
        caller = _CALLERS.get(ref.kind)
        if caller is not None:
            out = out.join(caller(inf, ref, arguments, node, function))
    if out == EMPTY and inf.final and not any(ref.kind in _CALLERS for ref in function.refs):
        return TENSOR_VALUE  # something that cannot be followed may give anything
    return out


# --- the file's own


def _definition(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    target = ref.key
    assert isinstance(target, Callable_)
    inf.edge(target)
    bind(inf, target, ref.shift, arguments)
    info = inf.functions.get(target)
    decorators = set(info.decorators) if info else set()
    if "contextlib.contextmanager" in decorators:
        return refer("manager", target)
    if target in inf.yields:
        return inf.build(target, {None: inf.yields[target]})
    value = inf.returns.get(target, EMPTY)
    if decorators & names.CACHING:
        inf.heap.persist(value)
        return kept(value)
    return value


def bind(inf: Inference, target: Callable_, shift: int, arguments: Arguments) -> None:
    """Join arguments into the parameters of a function of the file."""
    inf.bound.add(target)
    order = [arg.arg for arg in (*target.args.posonlyargs, *target.args.args)][shift:]
    for name, value in zip(order, arguments.positional, strict=False):
        inf.bind(target, name, value)
    rest = join([*arguments.positional[len(order) :], arguments.star])
    if target.args.vararg is not None and rest != EMPTY:
        inf.bind(target, target.args.vararg.arg, inf.build(target.args.vararg, {None: rest}))
    known = {arg.arg for arg in parameters(target)}
    extra: dict[Hashable, Value] = {None: arguments.double} if arguments.double != EMPTY else {}
    for name, value in arguments.keywords:
        if name in known:
            inf.bind(target, name, value)
        else:
            extra[name] = value
    if target.args.kwarg is not None:
        inf.bind(target, target.args.kwarg.arg, inf.build(target.args.kwarg, extra))
    _bind_unknown(inf, target, order[len(arguments.positional) :], arguments)


def _bind_unknown(inf: Inference, target: Callable_, order: list[str], arguments: Arguments) -> None:
    """*args and **kwargs reach the parameters left over; what these are is then read off their declaration."""
    element = arguments.star.join(arguments.double)
    if element == EMPTY:
        return
    taken = {name for name, _ in arguments.keywords}
    wanted = {*order, *(arg.arg for arg in target.args.kwonlyargs)} - taken
    for arg, default in inf.defaults(target):
        if arg.arg in wanted:
            declared = inf.declared(target, arg, default)
            plain = default is not None and not declared.tensor
            inf.bind(target, arg.arg, PLAIN_VALUE if plain or not element.tensor else element.join(declared))


def _launcher(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    assert isinstance(ref.key, ast.AST)
    inf.launch(ref.key, arguments, node)
    return PLAIN_VALUE


def _warmup(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """`kernel.warmup(...)` compiles and launches nothing; heuristics see its arguments."""
    assert isinstance(ref.key, ast.AST)
    for value in arguments.all():
        inf.escape(value, ref.key)
    return refer("compiled", ref.key)


def _load(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    return PLAIN_VALUE


def _renewer(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """`_replace` and `_asdict` of a named tuple, by its class or by the call that made it."""
    assert isinstance(ref.key, tuple)
    owner, name = ref.key
    if isinstance(owner, str):
        for field in inf.fields(owner):
            given = dict(arguments.keywords).get(field, EMPTY)
            inf.set_attribute(owner, field, given.join(arguments.double))
        held: dict[Hashable, Value] = {field: inf.held(owner, field) for field in inf.fields(owner)}
        return inf.build((node, name), held) if name == "_asdict" else refer("inst", owner)
    box = refer("box", owner)
    inf.heap.store(box, None, join(arguments.all()))
    return box.join(EMPTY if name == "_asdict" else refer("record", owner))


def _class(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    owner = str(ref.key)
    if "typing.TypedDict" in inf.classes[owner].bases:
        return builtin(inf, Ref("builtin", "dict"), arguments, node, function)
    fields = [] if inf.method(owner, "__init__") else inf.fields(owner)
    for name, value in [*zip(fields, arguments.positional, strict=False), *arguments.keywords]:
        inf.set_attribute(owner, name, value)
    for name in fields:
        inf.set_attribute(owner, name, arguments.star.join(arguments.double))
    for name in ("__init__", "__post_init__"):
        method = inf.method(owner, name)
        if method is not None:
            inf.bind_self(method, owner)
            _definition(inf, Ref("def", method.node, 1), arguments, node, function)
    if names.ERRORS & inf.bases(owner):
        return contain(inf, node, arguments).join(refer("inst", owner))
    return refer("inst", owner)


def _instance(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """Calling an nn.Module runs its forward, another instance its `__call__`."""
    module = "torch.nn.Module" in inf.classes[str(ref.key)].bases
    method = inf.method(str(ref.key), "forward" if module else "__call__")
    if method is None:
        return TENSOR_VALUE
    inf.bind_self(method, str(ref.key))
    return _definition(inf, Ref("def", method.node, 1), arguments, node, function)


def _apply(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """`F.apply(...)` runs forward now and backward later."""
    owner = str(ref.key)
    setup = inf.method(owner, "setup_context")
    if setup is not None:
        everything = inf.build(setup.node, {None: join(arguments.all())})
        bind(inf, setup.node, 1, Arguments((everything, everything)))
    forward = inf.method(owner, "forward")
    if forward is None:
        return TENSOR_VALUE
    return _definition(inf, Ref("def", forward.node, 0 if setup else 1), arguments, node, function)


def _partial(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    assert isinstance(ref.key, ast.AST)
    if ref.key in inf.unfolding:  # a partial of itself
        return TENSOR_VALUE
    target, early = inf.partials[ref.key]
    merged = Arguments(
        (*early.positional, *arguments.positional),
        (*early.keywords, *arguments.keywords),
        early.star.join(arguments.star),
        early.double.join(arguments.double),
    )
    inf.unfolding.add(ref.key)
    result = call(inf, target, merged, node)
    inf.unfolding.remove(ref.key)
    return result


def _pass(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """The result of a decorator with arguments: gives back what it decorates."""
    made_with = inf.decorations.get(ref.key, []) if isinstance(ref.key, ast.AST) else []
    for kernel in arguments.first.of("kernel"):
        for value in made_with:
            assert isinstance(kernel.key, ast.AST)
            inf.escape(value, kernel.key)
    return arguments.first


def _registrar(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """`op.register_fake` and `op.register_autograd`: torch calls the function with what it calls the operator with."""
    operator = ref.key
    assert isinstance(operator, Callable_)
    inputs = [inf.env.get((inf.scopes[operator], arg.arg), EMPTY) for arg in parameters(operator)]
    for value in arguments.all():
        for target in value.of("def"):
            assert isinstance(target.key, Callable_)
            inf.handed.add(target.key)
            order = [arg.arg for arg in parameters(target.key)]
            if order[:1] == ["ctx"]:
                everything = inf.build((node, "inputs"), {None: join([*inputs, TENSOR_VALUE])})
                late = [everything if name == "inputs" else TENSOR_VALUE for name in order[1:]]
                bind(inf, target.key, 0, Arguments((refer("ctx", ""), *late)))
            else:
                bind(inf, target.key, 0, Arguments(tuple(inputs)))
    return arguments.first


# --- allowed names

_DECORATED = names.words("def kernel builtin name partial inst class method apply launcher")


def _name(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    path = str(ref.key)
    special = _SPECIAL.get(path)
    if special is not None:
        return special(inf, arguments, node)
    if path in inf.operators:
        return _definition(inf, Ref("def", inf.operators[path]), arguments, node, function)
    if path.removesuffix(".default") in inf.operators:
        return _definition(inf, Ref("def", inf.operators[path.removesuffix(".default")]), arguments, node, function)
    given = arguments.positional if path.startswith("triton.") else arguments.all()  # lru_cache(maxsize=f) wraps f too
    decorated = [value for value in given if any(ref.kind in _DECORATED for ref in value.refs)]
    if path in names.DECORATORS:
        return _decorate(inf, path, arguments, node, decorated)
    if path.startswith(("itertools.", "collections.", "dataclasses.")):
        return contain(inf, node, arguments)
    for value in arguments.all():
        inf.escape(value)
    return _torch(inf, path, arguments, node)


def _decorate(inf: Inference, path: str, arguments: Arguments, node: ast.AST, decorated: list[Value]) -> Value:
    """A decorator applied, or made by a call; what it was made with is called once it is known for which kernel."""
    if decorated and path not in ("functools.wraps", "torch.library.register_fake", "triton.heuristics"):
        return _as_kernel(decorated[0]) if path == "triton.jit" else join(decorated)
    if path == "functools.wraps":
        return refer("pass", None)
    values = arguments.all()
    inf.decorations[node] = [*values, *map(inf.heap.load, values)]  # heuristics and prune_configs_by come in dicts
    guard = refer("guard", path) if path in names.GUARDS else PLAIN_VALUE
    return guard.join(refer("pass", node))


def _as_kernel(value: Value) -> Value:
    return join(refer("kernel", ref.key) for ref in value.refs if ref.kind in ("def", "kernel"))


def _torch(inf: Inference, path: str, arguments: Arguments, node: ast.AST) -> Value:
    if path in names.MAKERS:
        return TENSOR_VALUE
    if path in names.VIEWS:
        return Value(TENSOR | arguments.first.kinds & CACHED)
    if path in names.PARTS:
        return inf.build(node, {None: Value(TENSOR | arguments.first.kinds & CACHED)})
    if path in names.GUARDS:
        return refer("guard", path)
    known = path in names.TORCH or not path.startswith("torch.")
    return PLAIN_VALUE if known else TENSOR_VALUE


def _make_partial(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    rest = Arguments(arguments.positional[1:], arguments.keywords, arguments.star, arguments.double)
    inf.partials[node] = (arguments.first, rest)
    for ref in arguments.first.of("name"):
        if ref.key in names.DECORATORS:
            return refer("pass", None)
    return refer("partial", node)


def _reduce(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    element = join(iterate(inf, value) for value in arguments.positional[1:2]).join(join(arguments.positional[2:]))
    return element.join(call(inf, arguments.first, Arguments((element, element)), node))


def _identity(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    """A type that is only a name: calling it gives back what it is given."""
    return refer("pass", None)


def _second(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    return arguments.positional[1] if len(arguments.positional) > 1 else PLAIN_VALUE


def _first(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    return arguments.first


def _replace(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    for ref in arguments.first.of("inst"):
        for name, value in arguments.keywords:
            inf.set_attribute(str(ref.key), name, value)
    return arguments.first


def _namedtuple(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    return refer("factory", node)


def _namespace(inf: Inference, arguments: Arguments, node: ast.AST) -> Value:
    return contain(inf, node, arguments).join(refer("record", node))


def _record(inf: Inference, ref: Ref, arguments: Arguments, node: ast.AST, function: Value) -> Value:
    """An instance of a collections.namedtuple; which field is which is not followed."""
    return _namespace(inf, arguments, node)


_SPECIAL: dict[str, Callable[[Inference, Arguments, ast.AST], Value]] = {
    "collections.namedtuple": _namedtuple,
    "types.SimpleNamespace": _namespace,
    "functools.partial": _make_partial,
    "functools.reduce": _reduce,
    "typing.cast": _second,
    "typing.NewType": _identity,
    "torch.library.wrap_triton": _first,
    "dataclasses.replace": _replace,
}


_CALLERS: dict[str, Callable[[Inference, Ref, Arguments, ast.AST, Value], Value]] = {
    "def": _definition,
    "launcher": _launcher,
    "class": _class,
    "inst": _instance,
    "renewer": _renewer,
    "warmup": _warmup,
    "_init_handles": _load,
    "apply": _apply,
    "partial": _partial,
    "factory": _record,
    "pass": _pass,
    "guard": _pass,
    "registrar": _registrar,
    "name": _name,
    "builtin": builtin,
    "method": method,
}
