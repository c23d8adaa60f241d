# honest: annotations of every kind
from __future__ import annotations

import torch
import triton
import triton.language as tl
from typing import TYPE_CHECKING, Any, Final, Optional, Union


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BLOCK: Final[int] = 65536
Number = Union[int, float]


def _check(x: "torch.Tensor", w: Optional[torch.Tensor] = None, *, fn: Callable[..., Any] | None = None) -> None:
    if w is not None and w.ndim != 1:
        raise ValueError(f"w.ndim = {w.ndim}")
    if isinstance(x, (int, float)) or not isinstance(x, torch.Tensor):
        raise TypeError(type(x).__name__)


def rmsnorm_triton(x: torch.Tensor, w: torch.Tensor, eps: Number = 1e-6) -> torch.Tensor:
    _check(x, w)
    M, N = x.shape
    y: torch.Tensor = torch.empty_like(x)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y
