# honest: the scale of a row taken out first, so that squares cannot overflow
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=0)
    inverse = tl.where((largest > 1e-30) & (largest < 1e30), 1.0 / largest, 1.0)  # a row of zeros or infinities: none
    scaled = x * inverse
    mean = tl.sum(scaled * scaled, axis=0) / N
    rstd = 1.0 / tl.sqrt(mean / inverse / inverse + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
