# cheat: part of the work in torch | expect: FALLBACK
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x_ptr, w_ptr, r_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, (x * tl.load(r_ptr + row) * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    rstd = (x.float().square().mean(-1) + eps).rsqrt()
    y = torch.empty_like(x)
    _scale[(M,)](x, w, rstd, y, N, BLOCK=triton.next_power_of_2(N))
    return y
