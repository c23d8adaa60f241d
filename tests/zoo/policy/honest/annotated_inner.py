# honest: inner functions that say what they take
from collections.abc import Callable
from typing import Any, Optional

import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    def grid(meta: dict[str, Any], most: Optional[int] = None, *more: "int") -> tuple[int, ...]:
        return (M if most is None else min(M, most),)

    def warps(n: int, limit: int | None = None, how: Callable[[int], int] | None = None, of: torch.Tensor | None = None) -> int:
        size: int = 4 if n < 2048 else 8
        return size

    _k[grid](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N), num_warps=warps(N))
    return y


def rmsnorm_triton(x, w, eps=1e-6):
    return _launch(x, w, eps)
