"""What is found out about a problem by executing it: frozen records, as they cross from the judge's process."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.records import Record


@dataclass(frozen=True)
class Array(Record):
    """A tensor of the problem. Its sizes, and the range of its integers if it holds such, are arithmetic over dims."""

    name: str  # as an argument of the op
    shape: tuple[str, ...]
    dtype: str
    range: tuple[str, str] | None = None
    parameter: str = ""  # of the model, as torch names it

    @property
    def floating(self) -> bool:
        """Whether it holds floats."""
        return self.dtype.startswith(("float", "bfloat"))


@dataclass(frozen=True)
class Facts(Record):
    """A problem, or in `refused` why it cannot be an op; then nothing else is said."""

    refused: str = ""
    title: str = ""
    dims: dict[str, int] = field(default_factory=dict)  # with the sizes that are given
    recovered: dict[str, str] = field(default_factory=dict)  # each dim from the shapes of the op's arguments
    inputs: tuple[Array, ...] = ()  # what forward takes, then the model's parameters
    outputs: tuple[Array, ...] = ()
    constructed: str = "meta"  # where the model can be: "meta" (no memory), or with the tensors
    shapes: tuple[tuple[int, ...], ...] = ()  # small ones that work
    telling: tuple[int, ...] = ()
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)  # from which draws work
    bench: tuple[tuple[int, ...], ...] = ()
    flops: str = "0"  # of the model, by torch; 0: not known
    dtypes: tuple[str, ...] = ("float32",)
    along: str = ""  # a dim along which the results do not depend on each other
    error: float = 0.0  # of the model in float32 against float64, beyond 1e-5 of the result, on the small shapes
