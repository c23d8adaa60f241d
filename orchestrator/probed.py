"""What the probe of a person's code tells: frozen records, as they cross between `convert` and the probe's process.

Owns their shape alone. Imports nothing of ours but `records`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.records import Parameter, Record

Literal = Parameter | None


@dataclass(frozen=True)
class Seen(Record):
    """A tensor as it was in a call. The figures are those of its finite values."""

    shape: tuple[int, ...]
    dtype: str  # as torch has it, without "torch."
    contiguous: bool = True
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    spread: float = 0.0  # standard deviation

    @property
    def floating(self) -> bool:
        """Whether it holds floats."""
        return "float" in self.dtype


@dataclass(frozen=True)
class Called(Record):
    """One call: its tensors by argument, its other arguments, and what came back."""

    tensors: dict[str, Seen]
    others: dict[str, Literal]
    results: tuple[Seen, ...] = ()
    products: int = 0  # matrix products and convolutions, by the place in the code that asks for them
    written: dict[str, int] = field(default_factory=dict)  # tensors that the call wrote into, and which result each is


@dataclass(frozen=True)
class State(Record):
    """A tensor that the object itself has: a parameter, or a buffer."""

    seen: Seen
    parameter: bool
    constant: bool = False  # the constructor computes it: the same each time, and not all one value


@dataclass(frozen=True)
class Built(Record):
    """An object as its constructor makes it, and what the constructor was given.

    `sizes` are integers of its arguments by path, "dim" or "config.dim". An argument is `literal`, Python by its name,
    or an object (`opaque`): the name, and its place in what get_init_inputs() returns.
    """

    state: dict[str, State] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    name: str = ""
    literal: dict[str, str] = field(default_factory=dict)
    opaque: dict[str, int] = field(default_factory=dict)
    module: bool = True  # a torch.nn.Module, converted in eval mode


@dataclass(frozen=True)
class Examined(Record):
    """What is to be converted, seen in its examples. A problem is a sentence for the person, and ends it."""

    arguments: tuple[str, ...] = ()  # in the order of the signature
    calls: tuple[Called, ...] = ()
    built: Built | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Differentiated(Record):
    """Of an op's results and inputs, by name, those that autograd goes through. A problem ends it."""

    results: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Trial(Record):
    """A case of the op's test file that the reference is run on."""

    dims: dict[str, int]
    dtype: str = "float32"
    scale: float = 1.0
    parameters: dict[str, Parameter] = field(default_factory=dict)
    values: str = "normal"
    seed: int = 11
    figures: bool = True  # also in float64, for how exact it is


@dataclass(frozen=True)
class Outcome(Record):
    """What became of a trial: an error, or the results; and how far float32 is from float64 there."""

    error: str = ""
    results: tuple[Seen, ...] = ()
    finite: bool = True
    error_abs: float = 0.0  # of the reference in float32 against float64, beyond 1e-5 of the result; the largest
    precision: float = (
        1.0  # what a change of the inputs in their last place costs, in units of the reference's own error
    )
    seconds: float = 0.0


@dataclass(frozen=True)
class Counted(Record):
    """How many floating-point operations a call makes; in `error` what kept it from being counted."""

    flops: int = 0
    error: str = ""
