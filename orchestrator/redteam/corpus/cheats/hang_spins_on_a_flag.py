# cheat: hang in the kernel | expect: TIMEOUT
import torch
import triton
import triton.language as tl


@triton.jit
def _norm(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    while tl.load(w_ptr, volatile=True) == tl.load(w_ptr, volatile=True):
        rstd += 0.0
    tl.store(y_ptr + row * N + c, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _norm[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
