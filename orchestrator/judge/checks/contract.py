"""What was returned is what the op promises: so many plain tensors, of that shape, dtype, device and layout.

Catches: None, an empty tuple, a tuple where one tensor is promised, a Tensor subclass, a result that broadcasts to
the right shape, a float32 result for half-precision inputs. The types are what the candidate's process says of them;
a lie there only changes how the bytes that it delivered are read, and the values are compared next. Cannot catch:
wrong values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.judge.candidate import CandidateFailed
from orchestrator.judge.results import several
from orchestrator.records import Status


def plain_tensors(results: Sequence[dict[str, Any]], device: str) -> None:
    """Raises CandidateFailed unless every result is exactly a strided torch.Tensor on `device`."""
    if not results:
        raise CandidateFailed(Status.WRONG_SHAPE, "returned an empty tuple instead of a tensor")
    for result in results:
        if result.get("type") != "torch.Tensor":
            raise CandidateFailed(Status.WRONG_SHAPE, f"returned {result.get('type')!r:.90}, not a torch.Tensor")
        if result["device"] != device:
            raise CandidateFailed(
                Status.WRONG_SHAPE, f"returned a tensor on {result['device']!r:.40}, inputs are on {device}"
            )
        if result["layout"] != "torch.strided":
            raise CandidateFailed(Status.WRONG_SHAPE, f"returned a tensor of layout {result['layout']!r:.40}")


def as_promised(got: object, want: object) -> None:
    """Raises CandidateFailed unless `got` has the arity, shapes and dtypes of `want`, the reference's result."""
    mine, theirs = several(got), several(want)
    if isinstance(got, tuple) != isinstance(want, tuple) or len(mine) != len(theirs):
        raise CandidateFailed(Status.WRONG_SHAPE, f"returned {_arity(got)}, expected {_arity(want)}")
    for index, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        which = f"result {index} has" if len(theirs) > 1 else "the result has"
        if one.shape != other.shape:
            raise CandidateFailed(
                Status.WRONG_SHAPE, f"{which} shape {tuple(one.shape)}, expected {tuple(other.shape)}"
            )
        if one.dtype != other.dtype:
            raise CandidateFailed(Status.WRONG_DTYPE, f"{which} dtype {one.dtype}, expected {other.dtype}")


def _arity(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else "one tensor"
