# Adds by atomics, in another order with each call, as a GPU does of itself and Triton's interpreter never would.
import torch
import triton
import triton.language as tl


@triton.jit
def _add_squares(x_ptr, s_ptr, N, first, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = (tl.program_id(1) + first) % tl.num_programs(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def _scale(x_ptr, s_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rstd = 1.0 / tl.sqrt(tl.load(s_ptr + row) / N + eps)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


_CALLS = []


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    sums = x.new_zeros(M, dtype=torch.float32)
    parts = triton.cdiv(N, 16)
    _CALLS.append(1)
    _add_squares[(M, parts)](x, sums, N, len(_CALLS) % parts, BLOCK=16)
    _scale[(M, parts)](x, sums, w, y, N, eps, BLOCK=16)
    return y
