# honest: functools.partial and reduce over numbers
import torch
import triton
import triton.language as tl
import functools


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _start(rows, x, w, y, n, eps, *, block):
    _k[(rows,)](x, w, y, x.stride(0), n, eps, BLOCK=block)


def rmsnorm_triton(x, w, eps=1e-6):
    N = x.shape[-1]
    M = functools.reduce(lambda a, b: a * b, x.shape[:-1], 1)
    y = torch.empty_like(x)
    start = functools.partial(_start, M, x, w, block=triton.next_power_of_2(N))
    start(y, N, eps)
    return y
