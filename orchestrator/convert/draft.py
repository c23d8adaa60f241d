"""An op in the making: everything that its folder will say, as one frozen record that each step replaces."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from orchestrator import arithmetic
from orchestrator.convert.dims import Sizes, Span
from orchestrator.convert.extract import Cut
from orchestrator.probed import Built, Differentiated, Literal
from orchestrator.records import Parameter

HALF = ("float16", "bfloat16")
DTYPES = ("float32", *HALF)
GRADIENT_DTYPES = (*DTYPES, "float64")  # in which a kernel that computes in float32 shows


@dataclass(frozen=True)
class Values:
    """How an input's values come from standard normal ones: times `spread`, plus `center`; of one sign if it must be.

    `fan`: the spread is for one term of a sum over the last axis, as weights are made.
    """

    center: float = 0.0
    spread: float = 1.0
    fan: bool = False
    sign: int = 0  # 1: not negative, -1: not positive

    @property
    def plain(self) -> bool:
        """Whether nothing is changed."""
        return self == Values()


@dataclass(frozen=True)
class Input:
    """A tensor of the entry; `key` is the argument's name, or the state's own where `kind` is "state",
    the forward op's result where it is "gradient".
    """

    shape: tuple[str, ...]
    kind: str
    key: str
    dtype: str = ""  # "": the case's
    range: tuple[int | str, int | str] | None = None
    boolean: bool = False  # the original takes a mask; an op has no inputs of bool, so that int32 stands for it
    strided: bool = False
    values: Values = Values()

    @property
    def scaled(self) -> bool:
        """Whether the case's scale is applied: to what is passed, not to what the object has."""
        return self.kind == "argument" and self.range is None


@dataclass(frozen=True)
class Output:
    """A result; its dtype where it is not that of the first float input, and the input that it is written into."""

    shape: tuple[str, ...]
    dtype: str = ""
    in_place: str = ""


@dataclass(frozen=True)
class Asked:
    """The cases of the op, once it is known which it takes."""

    shapes: tuple[tuple[int, ...], ...] = ()
    large: tuple[tuple[int, ...], ...] = ()  # of the bench, and in the sweep for machines with a GPU
    empty: tuple[tuple[int, ...], ...] = ()
    scales: tuple[float, ...] = (1.0,)
    telling: tuple[str, ...] = ()
    judgeable: tuple[str, ...] = ()  # kinds that may be told, should a decoy need them
    told_parameters: dict[str, Parameter] = field(default_factory=dict)
    tolerance: dict[str, tuple[float, float]] = field(default_factory=lambda: dict.fromkeys(DTYPES, (1e-2, 1e-2)))
    precision: float = 8.0
    equivalent: dict[str, str] = field(
        default_factory=dict
    )  # decoys that no case need tell from the reference, and why


@dataclass(frozen=True)
class Draft:
    """The op so far. `notes` are sentences for the person: what was inferred, and what could not be varied."""

    name: str
    cut: Cut
    sizes: Sizes  # of the example
    inputs: dict[str, Input]
    outputs: dict[str, Output]
    built: Built | None = None
    ties: dict[str, str] = field(default_factory=dict)  # constructor's size, by path: the dim that it is
    fixed: dict[str, Literal] = field(default_factory=dict)  # arguments that stay as the example has them
    parameters: dict[str, Parameter] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    asked: Asked = Asked()
    products: int = 0  # matrix products of one call
    flops: str = "0"  # in the dims; 0 where it is not known
    default_dtype: bool = False  # the code makes tensors of the default dtype, which must be float64 beside float64
    notes: tuple[str, ...] = ()
    forward: Draft | None = None  # the op whose gradients this one's results are
    of: Differentiated = Differentiated()  # which of its results and inputs have one

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those of its cases."""
        return GRADIENT_DTYPES if self.forward else DTYPES

    @property
    def lead(self) -> str:
        """The input whose dtype the results have: the first of floats, of the case's dtype where there is one."""
        floats = [name for name, one in self.inputs.items() if one.range is None]
        return next((name for name in floats if not self.inputs[name].dtype), floats[0])

    def elements(self, sizes: Sizes) -> int:
        """Elements of all tensors of a call."""
        shapes = [*(one.shape for one in self.inputs.values()), *(one.shape for one in self.outputs.values())]
        return sum(math.prod(arithmetic.value(text, sizes) for text in shape) for shape in shapes)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims by name; the last is one that varies."""
        return tuple(self.sizes)
