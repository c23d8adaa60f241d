# honest: a generic class with a property, __repr__ and a static method
import torch
import triton
import triton.language as tl
from typing import Generic, TypeVar


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


T = TypeVar("T")


class Row(Generic[T]):
    def __init__(self, width: T):
        self.width = width

    def __repr__(self):
        return f"Row({self.width})"

    @property
    def block(self):
        return triton.next_power_of_2(self.width)

    @staticmethod
    def warps(block):
        return 4 if block < 4096 else 16


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    row = Row(N)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=row.block, num_warps=row.warps(row.block))
    return y
