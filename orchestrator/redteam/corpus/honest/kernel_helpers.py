# honest: device functions: helpers that return several values
import torch
import triton
import triton.language as tl


@triton.jit
def _load_row(ptr, row, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    return tl.load(ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32), cols, mask


@triton.jit
def _rstd(x, N, eps):
    return 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x, cols, mask = _load_row(x_ptr, row, N, BLOCK)
    w, _, _ = _load_row(w_ptr, row * 0, N, BLOCK)
    tl.store(y_ptr + row * N + cols, (x * _rstd(x, N, eps) * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
