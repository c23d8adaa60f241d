# honest: annotations of every kind, keyword-only options
from __future__ import annotations

from typing import Final, Optional, TypeAlias

import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)

Launch: TypeAlias = tuple[int, int]


def _launch(n: int, *, widest: Final = 16) -> Launch:
    block: int = triton.next_power_of_2(n)
    return block, min(widest, max(1, block // 512))


def rmsnorm_triton(x: "torch.Tensor", w: "Optional[torch.Tensor]", eps: float = 1e-6) -> torch.Tensor:
    """x: (M, N), w: (N,); returns (M, N) in the dtype of x."""
    M, N = x.shape
    y: torch.Tensor = torch.empty_like(x)
    block, warps = _launch(N)
    _rms[(M,)](x, w, y, N, eps, BLOCK=block, num_warps=warps)
    return y
