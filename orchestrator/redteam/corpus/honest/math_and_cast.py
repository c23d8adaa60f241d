# honest: tl.math, tl.cast, tl.fma
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.cast(tl.program_id(0), tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.cast(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0), tl.float32)
    w = tl.cast(tl.load(w_ptr + cols, mask=cols < N, other=0.0), tl.float32)
    rstd = tl.math.rsqrt(tl.fma(tl.sum(x * x, axis=0), 1.0 / N, eps))
    tl.store(y_ptr + row * N + cols, tl.cast(x * rstd * w, y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
