"""The kernel language in Triton's interpreter: names, loops and operators that Python means otherwise.

The interpreter runs a kernel as Python, rewritten a little. Where Python's meaning differs from the compiler's without
an error, the kernel is rewritten a little more.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import triton
import triton.language as tl
from triton.runtime import interpreter

from orchestrator.judge.interpreter.limits import NotInterpretable


def patch_once() -> None:
    """Fault (3.5 to 3.7): every call of a helper function replaces each name of the language anew, which takes most of
    the time that a kernel takes. It is done once and stays, for `tl` and for `tl.core`, however they were imported."""
    patch = interpreter._patch_lang

    def visible() -> None: ...

    patch(types.FunctionType(visible.__code__, {"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda fn: _Nothing()


def scalar_as_index() -> None:
    """Fault (3.5, 3.6 with numpy 2.4 and later): a scalar is an array of one element, which numpy no longer takes for a
    Python integer, so no `range` takes a scalar. Comes after `patch_once`, which sets what is wrong."""
    tl.tensor.__index__ = lambda self: int(self.handle.data.item())


def say_what_is_missing() -> None:
    """Fault (3.5 to 3.7): `dot_scaled` fails on its way to an operation that the interpreter lacks, with an error that
    looks like the kernel's. Comes after `patch_once`."""

    def dot_scaled(*args: Any, **kwargs: Any) -> Any:
        raise NotInterpretable("the interpreter has no dot_scaled")

    tl.dot_scaled = tl.core.dot_scaled = dot_scaled


def conditions() -> None:
    """Fault (3.6, 3.7): the condition of `while tl.condition(...)` is an object, which is always true."""
    if hasattr(tl, "condition"):
        tl.condition.__bool__ = lambda self: bool(self.condition)


def constants() -> None:
    """Faults (3.5 to 3.7): a `tl.constexpr` of the module left of a tensor makes a constant of the result, which no
    function of the language takes; a constant has no `len`, `int` or `float`."""
    for name in _OPERATORS.split():
        setattr(tl.constexpr, name, _beside_tensors(name, getattr(tl.constexpr, name)))
    for name, function in (("__len__", len), ("__int__", int), ("__float__", float)):
        setattr(tl.constexpr, name, _of_its_value(function))


_OPERATORS = (
    "__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __and__ __or__ __xor__ __lshift__ __rshift__"
    " __lt__ __le__ __gt__ __ge__ __eq__ __ne__"
)


def _beside_tensors(name: str, of_constants: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    of_values = getattr(operator, name)

    def applied(self: Any, other: Any) -> Any:
        return of_values(self.value, other) if isinstance(other, tl.tensor) else of_constants(self, other)

    return applied


def _of_its_value(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: function(self.value)


def member_functions() -> None:
    """Fault (3.5 to 3.7): the functions of `tl.math` as methods of a block, `x.exp()`, are left as the compiler has
    them and ask for its state. Comes after `patch_once`, which replaces the other methods."""
    for name, member in list(vars(tl.tensor).items()):
        if callable(member) and "_semantic" in inspect.signature(member).parameters:
            setattr(tl.tensor, name, bound(member))


def descriptor_strides() -> None:
    """Fault (3.5): a tensor descriptor's strides must be multiples of 16 elements instead of 16 bytes."""
    if not triton.__version__.startswith("3.5"):
        return
    validate = interpreter.TensorDescHandle.validate

    def in_bytes(self: Any) -> None:
        size = self.base.dtype.element_ty.primitive_bitwidth // 8
        strides = self.strides
        self.strides = [*(_times(stride, size) for stride in strides[:-1]), strides[-1]]
        try:
            validate(self)
        finally:
            self.strides = strides

    interpreter.TensorDescHandle.validate = in_bytes


def _times(stride: Any, size: int) -> Any:
    return interpreter.TensorHandle(stride.data * size, stride.dtype)


class _Nothing:
    """What the launcher of 3.6 and later wants undone."""

    def restore(self) -> None:
        return


def bind_names() -> None:
    """Faults (3.5 to 3.7): a function of the language that was imported by name (`from triton.language import load`)
    is not replaced and says "Did you forget to add @triton.jit"; the variables of an enclosing function are lost when
    the kernel is rewritten. Both are put into the kernel's globals, the second into a copy of them."""
    rewrite = interpreter.FunctionRewriter.rewrite_ast

    def rewritten(self: Any) -> Any:
        fn = self.fn
        for name, value in list(fn.__globals__.items()):
            if tl.core.is_builtin(value):
                fn.__globals__[name] = bound(value)
        if fn.__closure__:
            enclosing = {n: _cell(c) for n, c in zip(fn.__code__.co_freevars, fn.__closure__, strict=True)}
            scope = {**fn.__globals__, **enclosing}
            self.fn = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, fn.__closure__)
        return rewrite(self)

    interpreter.FunctionRewriter.rewrite_ast = rewritten


def rewrite() -> None:
    """Faults (3.5 to 3.7): the variable of a `range` loop is Python's and has no `.to()`; `and`, `or` and `not` ask
    a block for its truth, which is always true; so do Python's `min` and `max`; a constant is bare and has no
    `.value`. Each becomes what the compiler makes of it."""
    helpers = (_orchestrator_range, _orchestrator_logic, _orchestrator_not, _orchestrator_call, _orchestrator_value)
    for helper in helpers:
        setattr(interpreter, helper.__name__, helper)  # the interpreter gives its own globals to a rewritten kernel
    interpreter.FunctionRewriter.ast_transformer = _Transformer()


class _Transformer(interpreter.ASTTransformer):  # type: ignore[misc]
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        return super().visit_Assign(node)  # type: ignore[no-any-return]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call) and not ast.unparse(node.iter.func).endswith("static_range"):
            node.iter = _call("_orchestrator_range", node.iter.func, *node.iter.args, keywords=node.iter.keywords)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        return _call("_orchestrator_logic", ast.Constant(name), *[_later(value) for value in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_orchestrator_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        loaded = node.attr == "value" and isinstance(node.ctx, ast.Load)
        return _call("_orchestrator_value", node.value) if loaded else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return _call("_orchestrator_call", node.func, *node.args, keywords=node.keywords)
        return node


def _call(name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), keywords or [])


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _orchestrator_range(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
    """A loop's values as scalar tensors, of the type that its bounds have together."""
    values = make(*args, **kwargs)
    if not isinstance(values, range):
        return iter(values)
    semantic = interpreter.interpreter_semantic
    bounds = [semantic.to_tensor(bound).dtype for bound in args[:2]]
    dtype = semantic.integer_promote_impl(bounds[0], bounds[-1])
    return (semantic.scalar_constant(value, dtype) for value in values)


def _orchestrator_logic(name: str, *operands: Callable[[], Any]) -> Any:
    """`and` or `or`: a constant decides at once or has no part in it; tensors are combined element by element."""
    semantic = interpreter.interpreter_semantic
    combine = semantic.logical_and if name == "and" else semantic.logical_or
    value, result = None, None
    for operand in operands:
        value = operand()
        if not isinstance(value, tl.tensor):
            if bool(value) is (name == "or"):
                return value
        else:
            result = value if result is None else combine(result, value)
    return value if result is None else result


def _orchestrator_not(value: Any) -> Any:
    block = isinstance(value, tl.tensor) and value.type.is_block()
    return interpreter.interpreter_semantic.not_(value) if block else not value


def _orchestrator_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`min` and `max` of tensors, when the names are Python's."""
    elementwise = {builtins.min: tl.minimum, builtins.max: tl.maximum}.get(function)
    if elementwise is None or not any(isinstance(arg, tl.tensor) for arg in args):
        return function(*args, **kwargs)
    result = args[0]
    for arg in args[1:]:
        result = elementwise(result, arg)
    return result


def _orchestrator_value(constant: Any) -> Any:
    return getattr(constant, "value", constant)


def bound(builtin: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(builtin, updated=())
    def inner(*args: Any, **kwargs: Any) -> Any:
        return builtin(*args, **{**kwargs, "_semantic": interpreter.interpreter_semantic})

    return inner


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the name is not bound yet
        return None
