# honest: tl.maximum with tl.PropagateNan.ALL in a scale-safe rmsnorm
import torch
import triton
import triton.language as tl

@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        s += x * x
    r = tl.rsqrt(tl.maximum(tl.sum(s, 0) / N, 0.0, propagate_nan=tl.PropagateNan.ALL) + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + cols, (x * r * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=min(8192, triton.next_power_of_2(N)))
    return y
