"""What a kernel does, statement by statement, in abstract values: its loads, stores, reductions and operations.

Owns the walk through a kernel's body. Loops are walked twice, so that what a loop carries is seen; both branches of an
if are walked and joined; a helper that is a kernel itself is walked where it is called. Owns no judgement. What is not
understood becomes a value of which nothing is known.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.audit import operations, values
from orchestrator.audit.values import UNKNOWN, Pad, Value
from orchestrator.source import Function, Source

TRITON = "triton.language"
ATOMICS = {"atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas", "atomic_and", "atomic_or"}
DEPTH = 3  # of helpers within helpers
HELPED = 1000  # calls of helpers in a kernel whose bodies are walked
TWICE = 5  # loops within loops whose bodies are walked twice, so that what they carry has settled
LONGEST = 400  # nodes of an expression whose names are replaced by what they stand for


@dataclass(frozen=True)
class Access:
    """A load, a store or an atomic operation."""

    node: ast.Call
    kind: str  # "load", "store", "atomic"
    pointer: Value
    where: str  # the offset as text, names replaced by what they stand for, its base left out
    mask: Value | None
    other: bool
    data: Value | None  # what is stored
    guarded: bool  # within an if
    block: int  # the innermost list of statements that it stands in
    checked: bool  # a block pointer's boundary_check, or a tensor descriptor

    @property
    def base(self) -> str:
        """The parameter that the pointer started from."""
        return self.pointer.base


@dataclass(frozen=True)
class Operation:
    """A call of a function of the language, or a binary operation, with what went in and what came out."""

    node: ast.expr
    name: str  # "sum", "exp", "arange" …, or "+", "-", "*", "/"
    operands: tuple[Value, ...]
    result: Value
    axis: int | None = None
    in_loop: bool = False
    chosen: bool = False  # within an if over a constant of the launch: what else holds there, the launch knows


@dataclass
class Flow:
    """The facts of one kernel."""

    kernel: Function
    parameters: tuple[str, ...]
    constexprs: frozenset[str]
    accesses: dict[ast.AST, Access] = field(default_factory=dict)
    operations: dict[ast.AST, Operation] = field(default_factory=dict)
    barriers: list[ast.AST] = field(default_factory=list)
    loop_bounds: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    def of(self, *names: str) -> list[Operation]:
        """The operations of these names."""
        return [one for one in self.operations.values() if one.name in names]

    def kinds(self, *kinds: str) -> list[Access]:
        """The accesses of these kinds."""
        return [one for one in self.accesses.values() if one.kind in kinds]


def flow(kernel: Function, source: Source, pointer_dtypes: Mapping[str, str]) -> Flow:
    """Walk through a kernel. `pointer_dtypes`: element types that every launch agrees on, by parameter."""
    arguments = kernel.node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    constexprs = frozenset(a.arg for a in every if a.annotation and "constexpr" in ast.unparse(a.annotation))
    found = Flow(kernel, tuple(a.arg for a in every), constexprs)
    walker = _Walker(found, source, pointer_dtypes)
    for name in found.parameters:
        fixed = name in constexprs
        walker.names[name] = Value(base="" if fixed else name, runtime=not fixed, dtype="")
    walker.block(kernel.node.body)
    return found


class _Replacing(ast.NodeTransformer):
    """An expression with each name as `by` has it. One class for all: a class made at each call is garbage that only
    the collector finds, and kilobytes of it.
    """

    def __init__(self, by: Callable[[ast.Name], ast.expr]) -> None:
        self._by = by

    def visit_Name(self, name: ast.Name) -> ast.expr:
        return self._by(name)


class _Walker:
    """The state of a walk: what each name holds now, and what it stands for as text."""

    def __init__(self, found: Flow, source: Source, dtypes: Mapping[str, str]) -> None:
        self.found = found
        self.source = source
        self.dtypes = dtypes
        self.names: dict[str, Value] = {}
        self.meaning: dict[str, ast.expr] = {}
        self.guards = 0
        self.loops = 0
        self.choices = 0
        self.depth = 0
        self.helped = 0
        self.innermost = 0
        self.returned: list[list[Value]] = []

    # --- statements

    def block(self, body: list[ast.stmt]) -> None:
        outer, self.innermost = self.innermost, id(body)
        for statement in body:
            self.statement(statement)
        self.innermost = outer

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                whole = ast.copy_location(ast.BinOp(ast.Name(name, ast.Load()), op, value), node)
                ast.fix_missing_locations(whole)
                self.bind(target, self.value(whole), None)
                self.meaning.pop(name, None)
            case ast.For(target=target, iter=iterated, body=body):
                self.loop(body, target, iterated)
            case ast.While(test=test, body=body):
                self.value(test)
                self.loop(body, None, None)
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(test, body, orelse)
            case ast.Expr(value=value):
                self.value(value)
            case ast.Return(value=value):
                parts = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
                if self.returned:
                    self.returned[-1] = [self.value(part) for part in parts]
                else:
                    for part in parts:
                        self.value(part)
            case ast.With(body=body):
                self.block(body)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, [self.value(part) for part in value.elts], strict=True):
                self.bind(one, part, None)
        elif isinstance(target, ast.Tuple):
            results = self.results(value)
            for number, one in enumerate(target.elts):
                self.bind(one, results[number] if len(results) == len(target.elts) else UNKNOWN, None)
        else:
            meaning = self.expanded(value)
            self.bind(target, self.value(value), meaning)

    def bind(self, target: ast.expr, value: Value, meaning: ast.expr | None) -> None:
        if not isinstance(target, ast.Name):
            return
        self.names[target.id] = value
        if meaning is None:
            self.meaning.pop(target.id, None)
        else:
            self.meaning[target.id] = meaning

    def loop(self, body: list[ast.stmt], target: ast.expr | None, iterated: ast.expr | None) -> None:
        variable = UNKNOWN
        if isinstance(iterated, ast.Call):
            operands = [self.value(argument) for argument in iterated.args]
            self.found.loop_bounds |= {n.id for a in iterated.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            wide = any(one.dtype == "int64" for one in operands)
            variable = Value(dtype="int64" if wide else "int", indexed=True, row=True)
        carried = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        steps = [n.value for s in body for n in ast.walk(s) if isinstance(n, ast.AugAssign)]
        used = {n.id for step in steps for n in ast.walk(step) if isinstance(n, ast.Name)}
        self.found.loop_bounds |= used & self.found.constexprs
        self.loops += 1
        for _ in range(2 if self.loops <= TWICE else 1):
            before = dict(self.names)
            for name in carried:
                self.meaning.pop(name, None)
            if target is not None:
                self.bind(target, variable, None)
            self.block(body)
            self.join(before)
        self.loops -= 1

    def branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        self.value(test)
        chosen = any(isinstance(one, ast.Name) and one.id in self.found.constexprs for one in ast.walk(test))
        self.guards += 1
        self.choices += chosen
        start = dict(self.names)
        self.block(body)
        after, self.names = self.names, dict(start)
        self.block(orelse)
        self.join(after)
        self.guards -= 1
        self.choices -= chosen

    def join(self, other: Mapping[str, Value]) -> None:
        for name, value in other.items():
            self.names[name] = values.joined(self.names[name], value) if name in self.names else value

    def expanded(self, node: ast.expr) -> ast.expr | None:
        """With names replaced by what they stand for; None where that grows too long."""
        meaning, left = self.meaning, LONGEST
        for one in ast.walk(node):  # counted before anything is copied
            named = meaning.get(one.id) if isinstance(one, ast.Name) else None
            left -= 1 if named is None else sum(1 for _ in ast.walk(named))
            if left < 0:
                return None
        meant = _Replacing(lambda name: copy.deepcopy(meaning[name.id]) if name.id in meaning else name)
        whole: ast.expr = meant.visit(copy.deepcopy(node))
        return whole

    # --- expressions

    def results(self, node: ast.expr) -> list[Value]:
        """The values of a call that returns several."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            helper = self.source.function(node.func.id)
            if helper is not None and helper.kernel:
                return self.helper(helper, node)
        self.value(node)
        return []

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool()):
                return Value()
            case ast.Constant(value=int() | float() as number):
                return Value(
                    constant=float(number), dtype="int" if isinstance(number, int) else "", positive=number >= 0
                )
            case ast.Name(id=name):
                return self.names.get(name, UNKNOWN if not name.isupper() else Value())
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, op, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.value(operand)
                pad = Pad.FILLED if value.pad is Pad.LOW else value.pad
                negative = None if value.constant is None else -value.constant
                return value.but(constant=negative, negated=True, pad=pad, positive=False, base="")
            case ast.UnaryOp(operand=operand):
                return self.value(operand)
            case ast.Compare(left=left, ops=ops, comparators=others):
                chooses = any(isinstance(op, (ast.Eq, ast.NotEq)) for op in ops)
                return operations.comparison([self.value(one) for one in (left, *others)]).but(chooses=chooses)
            case ast.BoolOp(values=parts):
                return operations.comparison([self.value(one) for one in parts])
            case ast.Subscript(value=inner, slice=index):
                return operations.subscript(self.value(inner), index)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.value(test)
                return values.joined(self.value(body), self.value(orelse))
            case ast.Attribute(value=inner, attr="T"):
                return operations.transposed(self.value(inner))
            case ast.Call():
                return self.call(node)
        return UNKNOWN

    def binary(self, node: ast.BinOp, op: ast.operator, left: Value, right: Value) -> Value:
        result = values.combined(op, left, right, node)
        name = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op), "")
        if name:
            self.record(node, name, (left, right), result)
        return result

    # --- calls

    def called(self, node: ast.Call) -> tuple[str, list[ast.expr]]:
        """The name of a function of the language or of a method, and its arguments, the object first."""
        dotted = self.source.dotted(node.func)
        if dotted.startswith((TRITON, "triton.")):
            return dotted.rsplit(".", 1)[-1], list(node.args)
        if isinstance(node.func, ast.Name):
            return node.func.id, list(node.args)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id not in self.names and owner.id in self.source.paths:
                return node.func.attr, list(node.args)
            return node.func.attr, [owner, *node.args]
        return "", list(node.args)

    def call(self, node: ast.Call) -> Value:
        helper = self.source.function(node.func.id) if isinstance(node.func, ast.Name) else None
        if helper is not None and helper.kernel:
            results = self.helper(helper, node)
            return results[0] if len(results) == 1 else UNKNOWN
        name, arguments = self.called(node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if name in ("load", "store"):
            return self.access(node, name, arguments, keywords)
        if name in ATOMICS:
            self.barriers.append(node)
            return self.access(node, "atomic", arguments, keywords)
        if name in ("debug_barrier", "inline_asm_elementwise"):
            self.barriers.append(node)
        operands = [self.value(argument) for argument in arguments]
        named = {key: self.value(argument) for key, argument in keywords.items()}
        if not operands and "input" in named:
            operands = [named["input"]]
        result = operations.result(node, name, arguments, operands, keywords, named)
        self.record(node, name, tuple(operands), result, operations.axis_of(name, arguments, keywords))
        return result

    @property
    def barriers(self) -> list[ast.AST]:
        return self.found.barriers

    def access(self, node: ast.Call, kind: str, arguments: list[ast.expr], keywords: dict[str, ast.expr]) -> Value:
        descriptor = isinstance(node.func, ast.Attribute) and not self.source.dotted(node.func).startswith(TRITON)
        if not arguments and "pointer" in keywords:
            arguments = [keywords["pointer"]]
        if not arguments:
            return UNKNOWN
        pointer = self.value(arguments[0])
        place = 2 if kind in ("store", "atomic") else 1
        mask = keywords.get("mask") or (arguments[place] if len(arguments) > place and not descriptor else None)
        other = keywords.get("other") or (arguments[2] if kind == "load" and len(arguments) > 2 else None)
        data = keywords.get("value") or keywords.get("val") or (arguments[1] if len(arguments) > 1 else None)
        masked = None if mask is None or (isinstance(mask, ast.Constant) and mask.value is None) else self.value(mask)
        filler = self.value(other) if other is not None else None
        stored = self.value(data) if data is not None and kind != "load" else None
        checked = descriptor or pointer.descriptor or "boundary_check" in keywords
        if not self.depth:
            self.found.accesses[node] = Access(
                node=node,
                kind=kind,
                pointer=pointer,
                where=self.where_text(arguments[0], pointer.base),
                mask=masked,
                other=other is not None or "padding_option" in keywords,
                data=stored,
                guarded=bool(self.guards),
                block=self.innermost,
                checked=checked,
            )
        if kind == "store":
            return Value()
        return self.loaded(node, pointer, masked, filler, checked, kind)

    def loaded(
        self, node: ast.Call, pointer: Value, mask: Value | None, filler: Value | None, checked: bool, kind: str
    ) -> Value:
        dtype = self.dtypes.get(pointer.base, "input")
        if kind == "atomic":
            return Value(rank=pointer.rank, axes=pointer.axes, dtype=dtype, loads=frozenset({node}))
        rank, axes = (None, frozenset[int]()) if checked else (pointer.rank, pointer.axes)
        value = Value(
            rank=rank, axes=axes, dtype=dtype, loads=frozenset({node}), extents=pointer.extents, selected=True
        )
        if mask is None or checked:
            return value
        pad = Pad.ZERO if filler is None else operations.pad_of_filler(filler)
        return value.but(
            pad=pad,
            pad_axes=mask.axes,
            spoiled=node if pad is Pad.FILLED else None,
            undefined=frozenset({node}) if filler is None else frozenset(),
            short_of=mask.extents,
        )

    def where_text(self, pointer: ast.expr, base: str) -> str:
        whole = self.expanded(pointer)
        if whole is None:
            return f"#{id(pointer)}"
        blank = _Replacing(lambda name: ast.Name("_", name.ctx) if name.id == base else name)
        return ast.unparse(blank.visit(whole))

    def helper(self, helper: Function, call: ast.Call) -> list[Value]:
        """The values that a helper returns, its body walked with these arguments; it makes no findings here."""
        given = [self.value(argument) for argument in call.args]
        self.helped += 1
        if self.depth >= DEPTH or self.helped > HELPED:
            return []
        arguments = helper.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        outer, outer_meaning = self.names, self.meaning
        self.names, self.meaning = dict(zip(names, given, strict=False)), {}
        for keyword in call.keywords:
            if keyword.arg:
                inner, self.names = self.names, outer
                value = self.value(keyword.value)
                self.names = inner
                self.names[keyword.arg] = value
        self.depth += 1
        self.returned.append([])
        self.block(helper.node.body)
        self.depth -= 1
        self.names, self.meaning = outer, outer_meaning
        return self.returned.pop()

    def record(
        self, node: ast.expr, name: str, operands: tuple[Value, ...], result: Value, axis: int | None = None
    ) -> None:
        if not self.depth:
            self.found.operations[node] = Operation(
                node, name, operands, result, axis, bool(self.loops), bool(self.choices)
            )
