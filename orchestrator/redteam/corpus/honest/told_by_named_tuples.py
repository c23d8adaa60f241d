# honest: strides in a named tuple, an endless constant, a function of constants
from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Layout(NamedTuple):
    row: int
    columns: int


@triton.constexpr_function
def halved(size):
    return max(size // 2, 1)


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, layout, eps, BLOCK: tl.constexpr, NOTHING: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * layout.row
    total = 0.0
    for start in range(0, layout.columns, halved(BLOCK)):
        column = start + tl.arange(0, halved(BLOCK))
        inside = column < layout.columns
        x = tl.load(x_ptr + row + column, mask=inside, other=NOTHING).to(tl.float32)
        total += tl.sum(tl.where(inside, x * x, 0.0), axis=0)
    rstd = 1.0 / tl.sqrt(total / layout.columns + eps)
    for start in range(0, layout.columns, halved(BLOCK)):
        column = start + tl.arange(0, halved(BLOCK))
        inside = column < layout.columns
        x = tl.load(x_ptr + row + column, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + row + column, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=inside)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    if M > 0:
        block = min(triton.next_power_of_2(N), 4096)
        _rms[(M,)](x, w, y, Layout(x.stride(0), N), eps, BLOCK=block, NOTHING=float("-inf"))
    return y
