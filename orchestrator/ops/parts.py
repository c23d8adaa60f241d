"""What op.yaml is made of below its top: inputs, outputs, tolerances, the cases of a sweep, what is timed.

Owns the words that may stand there and each part's own rules. What parts must have in common is `spec`'s.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orchestrator.records import Parameter

# float64 for ops whose gradients are to be exact: there a kernel that computes in float32 is refused.
Dtype = Literal["float32", "float16", "bfloat16", "float64"]
IntegerDtype = Literal["int32", "int64"]
IntegerResult = Literal["int8", "int32", "int64"]
# Kinds of values that tell; the last two are not values but places in memory, of inputs that are `strided`.
Values = Literal[
    "rows",
    "columns",
    "offset",
    "zero_row",
    "nan",
    "inf",
    "masked",
    "masked_row",
    "low",
    "large",
    "peak",
    "sliced",
    "transposed",
]
# Pages of prompts/references, which a prompt quotes.
Tag = Literal[
    "masking",
    "logsumexp",
    "online_softmax",
    "semiring",
    "ring_buffer",
    "tiles",
    "split_reduction",
    "persistent",
]
VALUES: tuple[str, ...] = get_args(Values)
LAYOUTS = ("sliced", "transposed")
Size = Annotated[int, Field(ge=0)]  # 0: an empty input, for which an empty result is to come back
Positive = Annotated[int, Field(gt=0)]
Expression = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    """A part of op.yaml: a key that it does not have is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(Strict):
    """A tensor argument. A size of its shape is a dim, or arithmetic over dims.

    Floats are standard normal, times the case's scale where `scaled`, of the case's dtype unless `dtype` fixes another.
    Integers have a `range`, from its first to before its second. One that is `strided` need not be contiguous.
    """

    shape: tuple[Expression, ...]
    dtype: Dtype | IntegerDtype | None = None
    range: tuple[int | Expression, int | Expression] | None = None
    scaled: bool = False
    strided: bool = False

    @property
    def integer(self) -> bool:
        """Whether it holds integers."""
        return self.range is not None

    @model_validator(mode="after")
    def _integers_have_a_range(self) -> Input:
        if (self.dtype in get_args(IntegerDtype)) != self.integer:
            raise ValueError("an input with an integer dtype needs a range, such as [0, N], and no other has one")
        if self.integer and self.scaled:
            raise ValueError("an integer input cannot be scaled")
        return self


class Output(Strict):
    """A result; its dtype is that of the input named by `dtype_of`, or `dtype`, which may be an integer one.

    With `in_place` it is written into that input, which is returned: the tensor that was passed.
    """

    shape: tuple[Expression, ...]
    dtype_of: str | None = None
    dtype: Dtype | IntegerResult | None = None
    in_place: str | None = None

    @model_validator(mode="after")
    def _one_dtype(self) -> Output:
        if (self.dtype_of is None) == (self.dtype is None):
            raise ValueError("an output has either dtype_of, the name of an input, or dtype")
        return self


class Tolerance(Strict):
    """|got - want| <= atol + rtol * |want|: of the case's dtype for floats, of the result's own for integers."""

    rtol: Annotated[float, Field(ge=0)]
    atol: Annotated[float, Field(ge=0)]


class Telling(Strict):
    """Cases with values that expose plausible but wrong kernels: each kind, each other parameter, for every dtype.

    All at `shape`; kinds named in `elsewhere` also at the shape given there.
    """

    shape: tuple[Positive, ...]
    values: tuple[Values, ...] = ()
    parameters: dict[str, Parameter] = {}
    elsewhere: dict[Values, tuple[Positive, ...]] = {}


class Holdout(Strict):
    """Cases drawn anew for each verdict: `count` from the ranges, and the shapes in `always` for every dtype.

    A range is its first and last size, and where a third is given the step between sizes: [64, 128, 64] is 64 or 128.
    """

    count: Annotated[int, Field(ge=0)] = 0
    ranges: dict[str, tuple[int, int] | tuple[int, int, Positive]] = {}
    parameters: dict[str, tuple[Parameter, ...]] = {}
    always: tuple[tuple[Size, ...], ...] = ()


class Large(Strict):
    """A case whose offsets pass 2^31 elements, for a GPU and the full sweep.

    The reference of all of it would not fit: it is computed for a part of `along` at a time, a dim along which the
    results do not depend on each other.
    """

    shape: tuple[Positive, ...]
    dtype: Dtype
    along: str


class Sweep(Strict):
    """Every shape with every dtype and scale; `quick` bounds the dims of the subset for machines without a GPU."""

    shapes: Annotated[tuple[tuple[Size, ...], ...], Field(min_length=1)]
    dtypes: Annotated[tuple[Dtype, ...], Field(min_length=1)]
    scales: Annotated[tuple[float, ...], Field(min_length=1)]
    quick: dict[str, Positive]
    telling: Telling | None = None
    holdout: Holdout = Holdout()
    large: Large | None = None


class Call(Strict):
    """A baseline: an expression over the entry's arguments and `torch`, and a module to import for it."""

    call: Expression
    module: str = ""


class Curve(Strict):
    """Shapes that are shown beside those that decide: how the kernel fares as one dim grows."""

    shapes: tuple[tuple[Positive, ...], ...]
    dtype: Dtype


class Bench(Strict):
    """What to time. `bytes` and `flops` are expressions in the dims and `itemsize`.

    `flops_of`: what a kernel has to make at least, or what the reference makes and a kernel may do with fewer (where a
    mask leaves half, say); then no time is too short because of them. 0: not known, and the ceiling is that of memory.
    `baselines` by name, beside the reference and torch.compile of it, which are always there.
    """

    shapes: Annotated[tuple[tuple[Positive, ...], ...], Field(min_length=1)]
    dtypes: tuple[Dtype, ...]
    bytes: Expression
    flops: Expression
    flops_of: Literal["least", "reference"] = "least"
    baselines: Annotated[dict[str, Call], Field(max_length=4)] = {}
    curve: Curve | None = None
