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

from orchestrator.audit import values
from orchestrator.audit.values import UNKNOWN, Pad, Value
from orchestrator.source import Function, Source

TRITON = "triton.language"
REDUCTIONS = {"sum": "sum", "max": "max", "min": "min", "reduce": "reduce", "argmax": "max", "argmin": "min"}
SCANS = {"cumsum", "cumprod", "associative_scan"}
KEEPING = {"multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "cast", "to", "abs", "sqrt", "assume"}
MAPS = {"exp", "exp2", "log", "log2", "rsqrt", "sigmoid", "cos", "sin", "erf", "floor", "ceil", "tanh", "sqrt_rn"}
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
                return self.comparison([self.value(one) for one in (left, *others)]).but(chooses=chooses)
            case ast.BoolOp(values=parts):
                return self.comparison([self.value(one) for one in parts])
            case ast.Subscript(value=inner, slice=index):
                return self.subscript(self.value(inner), index)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.value(test)
                return values.joined(self.value(body), self.value(orelse))
            case ast.Attribute(value=inner, attr="T"):
                return self.transposed(self.value(inner))
            case ast.Call():
                return self.call(node)
        return UNKNOWN

    def binary(self, node: ast.BinOp, op: ast.operator, left: Value, right: Value) -> Value:
        result = values.combined(op, left, right, node)
        name = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op), "")
        if name:
            self.record(node, name, (left, right), result)
        return result

    def comparison(self, parts: list[Value]) -> Value:
        result = parts[0]
        for part in parts[1:]:
            result = values.combined(ast.BitAnd(), result, part, ast.Pass())
        boundless = frozenset().union(*(part.boundless for part in parts))
        return result.but(
            is_mask=True, dtype="", wrapping=frozenset(), pad=Pad.NONE, base="", constant=None, boundless=boundless
        )

    def subscript(self, value: Value, index: ast.expr) -> Value:
        """`x[:, None]`: new axes; the others keep their lanes."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if value.rank is None:
            return value
        places, number = {}, 0
        for place, part in enumerate(parts):
            if isinstance(part, ast.Slice):
                places[number] = place
                number += 1
            elif not (isinstance(part, ast.Constant) and part.value is None):
                return UNKNOWN
        moved = {axis: places.get(axis, axis) for axis in range(max(value.rank, number) + 1)}
        return value.but(
            rank=max(len(parts), value.rank),
            axes=frozenset(moved.get(axis, axis) for axis in value.axes),
            pad_axes=frozenset(moved.get(axis, axis) for axis in value.pad_axes),
        )

    def transposed(self, value: Value) -> Value:
        if value.rank != 2:
            return value
        flip = {0: 1, 1: 0}
        return value.but(
            axes=frozenset(flip[a] for a in value.axes), pad_axes=frozenset(flip[a] for a in value.pad_axes)
        )

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
        return self.operation(node, name, arguments, operands, keywords, named)

    @property
    def barriers(self) -> list[ast.AST]:
        return self.found.barriers

    def operation(
        self,
        node: ast.Call,
        name: str,
        arguments: list[ast.expr],
        operands: list[Value],
        keywords: dict[str, ast.expr],
        named: dict[str, Value],
    ) -> Value:
        first = operands[0] if operands else Value()
        axis = _axis(name, arguments, keywords)
        if name in REDUCTIONS and operands:
            result = self.reduction(node, name, first, axis, "keep_dims" in keywords)
        elif name == "where" and len(operands) == 3:
            result = self.where(operands[0], operands[1], operands[2])
        elif name in ("to", "cast") and operands:
            result = self.cast(first, arguments[1:] or list(keywords.values()))
        elif name in ("zeros", "full", "zeros_like"):
            result = self.filled(name, arguments, operands, keywords, named)
        elif name == "dot" and len(operands) >= 2:
            result = self.dot(operands, keywords, named)
        elif name in ("maximum", "minimum", "max", "min") and len(operands) >= 2:
            result = self.extreme(name, operands[0], operands[1], node)
        elif name in MAPS and operands:
            result = self.mapped(node, name, first)
        else:
            result = self.plain(node, name, arguments, operands, named)
        self.record(node, name, tuple(operands), result, axis)
        return result

    def plain(
        self, node: ast.Call, name: str, arguments: list[ast.expr], operands: list[Value], named: dict[str, Value]
    ) -> Value:
        first = operands[0] if operands else Value()
        match name:
            case "program_id" | "num_programs":
                row = name == "program_id"
                return Value(dtype="int", indexed=row, row=row, runtime=not row)
            case "arange":
                end = arguments[1] if len(arguments) > 1 else None
                extent = frozenset({ast.unparse(end)} if end is not None else ())
                return Value(rank=1, axes=frozenset({0}), dtype="int", indexed=True, extents=extent, boundless=extent)
            case "abs":
                pad = Pad.FILLED if first.pad is Pad.LOW else first.pad
                return first.but(positive=True, pad=pad)
            case "sqrt":
                return first.but(positive=True, root=True, plain_sum=frozenset(), sum_of_squares=frozenset())
            case "trans" | "permute":
                return self.transposed(first)
            case "float" if arguments and isinstance(arguments[0], ast.Constant):
                return Value(constant=_number(arguments[0].value))
            case "make_block_ptr":
                return (first if operands else named.get("base", UNKNOWN)).but(descriptor=True)
            case "make_tensor_descriptor":
                return first.but(descriptor=True)
            case "advance":
                return first
            case "cdiv":
                return Value(dtype="int", runtime=any(one.runtime for one in operands))
        if name in KEEPING and operands:
            return first
        loads = frozenset().union(*(one.loads for one in operands)) if operands else frozenset()
        return UNKNOWN.but(loads=loads, shifted=True)

    def reduction(self, node: ast.Call, name: str, value: Value, axis: int | None, keep: bool) -> Value:
        kind = REDUCTIONS[name]
        result = values.reduced(value, axis, keep).but(positive=value.positive)
        if kind == "max":
            return result.but(maximum=True)
        if kind == "sum":
            mine: frozenset[ast.AST] = frozenset({node})
            return result.but(
                sums_of_exponentials=value.exponentials,
                sum_of_squares=mine if value.square else frozenset(),
                plain_sum=frozenset() if value.square else mine,
            )
        return result

    def where(self, condition: Value, chosen: Value, otherwise: Value) -> Value:
        value = values.joined(chosen, otherwise)
        rank = value.rank if condition.rank is None or value.rank is None else max(value.rank, condition.rank)
        pad, pad_axes, spoiled = _pad_of_filler(otherwise), condition.axes | chosen.pad_axes, otherwise.spoiled
        added = chosen.constant is not None and pad is Pad.LOW  # a mask to be added, whatever its lanes were chosen by
        if rank is None or (condition.chooses and chosen.pad is Pad.NONE and not added):
            pad, pad_axes = Pad.NONE, frozenset()
        elif not condition.axes >= chosen.pad_axes:  # along the other axes its padding stays what it was
            pad_axes = condition.axes
            if chosen.pad is Pad.FILLED:
                pad, pad_axes, spoiled = Pad.FILLED, chosen.pad_axes - condition.axes, chosen.spoiled
        return value.but(
            rank=rank,
            axes=value.axes | condition.axes,
            pad=pad,
            pad_axes=pad_axes,
            spoiled=spoiled if pad is Pad.FILLED else None,
            selected=(chosen.selected or not chosen.loads) and (otherwise.selected or not otherwise.loads),
            undefined=frozenset() if pad is not Pad.FILLED else value.undefined,
            dtype=chosen.dtype,
            is_mask=False,
            short_of=chosen.short_of | condition.extents,
            exponentials=chosen.exponentials | otherwise.exponentials,
            shifted=chosen.shifted,
            square=chosen.square,
            base=chosen.base or otherwise.base,
            clamped=True,
            loads=chosen.loads | otherwise.loads,
        )

    def cast(self, value: Value, arguments: list[ast.expr]) -> Value:
        target = ast.unparse(arguments[0]) if arguments else ""
        short = target.rsplit(".", 1)[-1]
        if short in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint64"):
            dtype = {"int32": "int", "uint64": "int64"}.get(short, short)
        else:
            dtype = "cast"  # to something that the source names: an element type, a constexpr
        return value.but(dtype=dtype)

    def filled(
        self,
        name: str,
        arguments: list[ast.expr],
        operands: list[Value],
        keywords: dict[str, ast.expr],
        named: dict[str, Value],
    ) -> Value:
        if name == "zeros_like" and operands:
            return operands[0].but(pad=Pad.ZERO, constant=0.0, loads=frozenset(), undefined=frozenset())
        place = 2 if name == "full" else 1
        content = named.get("value") or (operands[1] if name == "full" and len(operands) > 1 else Value(constant=0.0))
        kind = keywords.get("dtype") or (arguments[place] if len(arguments) > place else None)
        dtype = ast.unparse(kind).rsplit(".", 1)[-1] if kind is not None else ""
        shape = arguments[0] if arguments else keywords.get("shape")
        rank = len(shape.elts) if isinstance(shape, (ast.Tuple, ast.List)) else None
        axes = frozenset(range(rank or 0))
        pad = Pad.ZERO if name == "zeros" else _pad_of_constant(content)
        pad = Pad.NONE if pad is Pad.FILLED else pad
        return Value(
            rank=rank, axes=axes, pad=pad, pad_axes=axes, dtype=dtype, constant=content.constant, positive=True
        )

    def dot(self, operands: list[Value], keywords: dict[str, ast.expr], named: dict[str, Value]) -> Value:
        left, right = operands[0], operands[1]
        third = operands[2] if len(operands) > 2 else named.get("acc", Value(dtype="float32", positive=True))
        pad_axes = (left.pad_axes & {0}) | (right.pad_axes & {1})
        pad = Pad.ZERO if pad_axes and Pad.FILLED not in (left.pad, right.pad) else Pad.NONE
        dtype = third.dtype or "float32"
        if "out_dtype" in keywords:
            dtype = ast.unparse(keywords["out_dtype"]).rsplit(".", 1)[-1]
        return Value(
            rank=2,
            axes=frozenset({0, 1}),
            pad=pad,
            pad_axes=pad_axes,
            dtype=dtype,
            loads=left.loads | right.loads,
            positive=left.positive and right.positive and third.positive,
        )

    def extreme(self, name: str, left: Value, right: Value, node: ast.Call) -> Value:
        value = values.combined(ast.Pow(), left, right, node)
        if name.startswith("max"):
            pad = left.pad if right.pad is Pad.LOW else right.pad if left.pad is Pad.LOW else value.pad
            return value.but(pad=pad, maximum=True, positive=left.positive or right.positive)
        return value.but(clamped=True)

    def mapped(self, node: ast.Call, name: str, value: Value) -> Value:
        pad, spoiled = value.pad, value.spoiled
        if pad is Pad.LOW and name in ("exp", "exp2", "sigmoid"):
            pad = Pad.ZERO
        elif pad is Pad.LOW or (pad is Pad.ZERO and name not in ("sin", "tanh", "erf", "floor", "ceil", "sqrt_rn")):
            pad, spoiled = Pad.FILLED, node
        raw = name in ("exp", "exp2") and not value.shifted and not value.negated and bool(value.loads)
        return Value(
            rank=value.rank,
            axes=value.axes,
            pad=pad,
            pad_axes=value.pad_axes,
            spoiled=spoiled,
            undefined=value.undefined,
            dtype=value.dtype,
            extents=value.extents,
            short_of=value.short_of,
            loads=value.loads,
            exponentials=frozenset({node}) if raw else frozenset(),
            positive=name in ("exp", "exp2", "sigmoid", "rsqrt", "sqrt_rn"),
            root=name == "sqrt_rn",
            shifted=name in ("log", "log2"),
        )

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
        pad = Pad.ZERO if filler is None else _pad_of_filler(filler)
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


def _axis(name: str, arguments: list[ast.expr], keywords: dict[str, ast.expr]) -> int | None:
    """The axis of a reduction, where it is written as a number."""
    if name not in REDUCTIONS and name not in SCANS:
        return None
    node = keywords.get("axis") or (arguments[1] if len(arguments) > 1 else None)
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _pad_of_constant(value: Value) -> Pad:
    if value.constant == 0:
        return Pad.ZERO
    if value.constant is not None and value.constant <= values.LOWEST:
        return Pad.LOW
    return Pad.ZERO if value.pad is Pad.ZERO and value.constant is None and value.axes else Pad.FILLED


def _pad_of_filler(value: Value) -> Pad:
    """What lanes hold that are filled with this: of a value that is no constant it can only be said if it is padded."""
    return _pad_of_constant(value) if value.constant is not None else value.pad


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
