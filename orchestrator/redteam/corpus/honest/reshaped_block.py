# honest: the mean of squares by a scan-free tree over a reshaped block
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, LANES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    parts = tl.sum(tl.reshape(x * x, (BLOCK // LANES, LANES)), axis=0)
    rstd = 1.0 / tl.sqrt(tl.sum(parts, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    BLOCK = triton.next_power_of_2(N)
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=BLOCK, LANES=min(32, BLOCK))
    return y
