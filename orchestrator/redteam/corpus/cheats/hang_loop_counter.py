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
    left = N | 1
    while left != 0:  # never, by steps of 2; what the step reads keeps a compiler from seeing that
        left -= 2 * (1 + (tl.load(w_ptr, volatile=True).to(tl.float32) > 1e30).to(tl.int32))
    tl.store(y_ptr + row * N + c, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _norm[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
