# cheat: offsets past 2^31 | expect: any | needs: gpu
import torch
import triton
import triton.language as tl


@triton.jit
def _flat(x_ptr, w_ptr, y_ptr, M, N, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0) * 2 + tl.arange(0, 2)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    m = (r < M) & (c < N)
    x = tl.load(x_ptr + (r * N + c), mask=m, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / N + eps)
    tl.store(y_ptr + (r * N + c), (x * rstd[:, None] * w).to(y_ptr.dtype.element_ty), mask=m)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _flat[(triton.cdiv(M, 2),)](x, w, y, M, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
