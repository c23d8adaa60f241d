"""The ways in which the judge has a call of the entry made, beside the plain one."""

from __future__ import annotations

from enum import StrEnum


class Way(StrEnum):
    """One per call; judge and candidate's process both know them."""

    PLAIN = "plain"
    MUTED = "muted"  # launches of the file's own kernels run no program
    REWARPED = "rewarped"  # launches that leave num_warps open get another number than Triton's default
    REVERSED = "reversed"  # in the interpreter, the last program of a launch runs first
    GUARDED = "guarded"  # in the interpreter, loads beside inputs and allocations are listed
    RECYCLED = "recycled"  # allocations are given the memory of the last such call as it left it, as torch's own does
    TRACED = "traced"  # what the device ran is listed
