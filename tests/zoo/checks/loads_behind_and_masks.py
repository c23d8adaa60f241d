# a load behind the end of x and w whose lanes are masked away afterwards | only: guarded_loads | expect: OUT_OF_BOUNDS | needs: cpu
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c).to(tl.float32)
    x = tl.where(c < N, x, 0.0)
    w = tl.load(w_ptr + c).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + c, x * rstd * w, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
