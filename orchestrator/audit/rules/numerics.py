"""Precision, overflow and cancellation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.audit.context import Context
from orchestrator.audit.findings import Hit, Part, Severity
from orchestrator.audit.rules.base import rule

HALF = ("float16", "bfloat16")
NEEDS_SINGLE = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "sigmoid")


@rule(
    "not-float32",
    Severity.MEDIUM,
    Part.NUMERICS,
    "a reduction in the input's own type",
    why="A sum of float16 or bfloat16 values in their own type loses digits with every element and overflows at 65504.",
    repair="Cast after the load: `tl.load(...).to(tl.float32)`.",
)
def reduction_in_half(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for reduction in flow.of("sum", "reduce", "cumsum"):
            operand = reduction.operands[0] if reduction.operands else None
            if operand is not None and operand.axes and operand.dtype in ("input", *HALF):
                yield Hit(reduction.node, "for float16 and bfloat16 inputs this sums in their type")


@rule(
    "half-accumulator",
    Severity.MEDIUM,
    Part.NUMERICS,
    "an accumulator of half precision",
    why="What a loop adds up in 11 bits stops growing as soon as a term is below a thousandth of the sum.",
    repair="Accumulate in float32 and cast once, at the store.",
)
def half_accumulator(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for addition in flow.of("+"):
            if addition.in_loop and addition.result.dtype in HALF and addition.result.loads:
                yield Hit(addition.node, f"the loop adds up in {addition.result.dtype}")
        for dot in flow.of("dot"):
            if dot.result.dtype in HALF:
                yield Hit(dot.node, f"tl.dot accumulates in {dot.result.dtype}")


@rule(
    "product-in-half",
    Severity.MEDIUM,
    Part.NUMERICS,
    "a product of two loaded values in the input's type",
    why="In float16 a product of values above 256 is infinite, and the next subtraction makes NaN of it.",
    repair="Cast both to float32 before they are multiplied.",
)
def product_in_half(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for product in flow.of("*"):
            left, right = product.operands
            if left.loads and right.loads and left.dtype in ("input", *HALF) and right.dtype in ("input", *HALF):
                if product.result.is_mask or not (left.axes or right.axes):
                    continue
                yield Hit(product.node, "for float16 inputs this overflows beyond 65504")


@rule(
    "function-of-half",
    Severity.MEDIUM,
    Part.CORRECTNESS,
    "an elementary function of a value that was not cast",
    why="Triton's exp, log, sqrt and their kin take float32 and float64; for float16 inputs it does not compile.",
    repair="Cast to float32 before.",
)
def function_of_half(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for call in flow.of(*NEEDS_SINGLE):
            if call.operands and call.operands[0].dtype in ("input", *HALF) and call.operands[0].loads:
                yield Hit(call.node, f"tl.{call.name} of a value as it was loaded: no float16 or bfloat16 input works")


@rule(
    "store-without-cast",
    Severity.LOW,
    Part.PRACTICE,
    "the store narrows without saying so",
    why="tl.store casts to the pointer's type by itself; written out, the place where digits are dropped can be seen.",
    repair="`tl.store(p, value.to(p.dtype.element_ty), ...)`.",
)
def silent_cast(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for store in flow.kinds("store"):
            if store.data is None or store.data.dtype != "float32" or not store.data.loads or store.base == "":
                continue
            if not _is_single(context, flow.name, store.base):
                yield Hit(store.node, "a float32 value is stored; for half-precision outputs it is narrowed here")


def _is_single(context: Context, kernel: str, parameter: str) -> bool:
    """Whether every launch passes a float32 tensor that the host allocated."""
    given = [one.arguments.get(parameter) for one in context.launches_of(kernel)]
    texts = [ast.unparse(m) for one in given if one is not None for m in _meanings(context, kernel, one)]
    return bool(texts) and all("float32" in text for text in texts)


def _meanings(context: Context, kernel: str, node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.Name):
        return [node]
    return [m for one in context.launches_of(kernel) for m in one.scope.meanings(node.id)] or [node]


@rule(
    "exp-without-maximum",
    Severity.HIGH,
    Part.NUMERICS,
    "a softmax or logsumexp without its maximum subtracted",
    why="exp of 89 is infinite in float32, so one large value makes the row infinite or NaN.",
    repair="Subtract the row's maximum before the exp; the result is the same.",
)
def unshifted_exp(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        seen: set[ast.AST] = set()
        for division in flow.of("/"):
            left, right = division.operands
            for node in (left.exponentials & right.sums_of_exponentials) - seen:
                seen.add(node)
                yield Hit(node, f"divided by its own sum in line {getattr(division.node, 'lineno', 0)}")
        for logarithm in flow.of("log", "log2"):
            for node in logarithm.operands[0].sums_of_exponentials - seen if logarithm.operands else ():
                seen.add(node)
                yield Hit(node, f"summed, and its logarithm taken in line {getattr(logarithm.node, 'lineno', 0)}")


@rule(
    "variance-by-difference",
    Severity.MEDIUM,
    Part.NUMERICS,
    "a variance as the mean of squares less the square of the mean",
    why="Where the mean is large beside the deviation both are nearly equal: digits cancel, it can become negative.",
    repair="Subtract the mean first and average the squares of what is left (padded lanes set to zero).",
)
def variance(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for difference in flow.of("-"):
            left, right = difference.operands
            if left.sum_of_squares and right.squared_mean:
                yield Hit(difference.node, "digits cancel where the mean is large beside the deviation")


@rule(
    "eps-outside-root",
    Severity.MEDIUM,
    Part.NUMERICS,
    "eps is added outside the root",
    why="The definitions of the norms add eps to the variance; beside the root the result differs for small rows.",
    repair="`tl.sqrt(variance + eps)`, unless the op is defined so (Adam is).",
)
def eps_outside(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for addition in flow.of("+"):
            node = addition.node
            if not isinstance(node, ast.BinOp):
                continue
            for value, other in ((addition.operands[0], node.right), (addition.operands[1], node.left)):
                if value.root and _is_eps(other):
                    yield Hit(node, "right only where the op defines it so")


def _is_eps(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return "eps" in name.lower()
        case ast.Constant(value=float() as number):
            return 0 < number < 1e-2
    return False


@rule(
    "tf32-by-default",
    Severity.MEDIUM,
    Part.NUMERICS,
    "tl.dot of float32 values without input_precision",
    why="The default is TF32, 10 bits of mantissa, and differs between releases.",
    repair='Say it: `input_precision="ieee"`, "tf32x3" or "tf32".',
)
def tf32(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        for dot in flow.of("dot"):
            given = {one.arg for one in dot.node.keywords} if isinstance(dot.node, ast.Call) else set()
            if given & {"input_precision", "allow_tf32"} or len(dot.operands) < 2:
                continue
            if all(operand.dtype == "float32" for operand in dot.operands[:2]):
                yield Hit(dot.node, "both operands are float32, and the precision is left to the release")


@rule(
    "online-maximum-infinite",
    Severity.LOW,
    Part.NUMERICS,
    "a running maximum that may still be minus infinity is subtracted",
    why="exp(-inf - -inf) is NaN: it happens for a row of which nothing so far lay inside the mask.",
    repair="Guard it: `tl.where(m == -float('inf'), 0.0, m)` as what is subtracted.",
)
def infinite_maximum(context: Context) -> Iterator[Hit]:
    for flow in context.flows:
        lows = _started_low(flow.kernel.node)
        for call in flow.of("exp", "exp2"):
            node = call.node
            if not call.in_loop or not isinstance(node, ast.Call) or not node.args:
                continue
            for difference in ast.walk(node.args[0]):
                match difference:
                    case ast.BinOp(left=ast.Name(id=old), op=ast.Sub(), right=ast.Name()) if old in lows:
                        yield Hit(
                            node, f"{old} starts at minus infinity: NaN for a row with nothing in its first block"
                        )


def _started_low(node: ast.AST) -> set[str]:
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and "inf" in ast.unparse(one.value):
            found.add(one.targets[0].id)
    return found
