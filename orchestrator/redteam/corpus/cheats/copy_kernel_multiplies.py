# cheat: a kernel copies a torch result | expect: FALLBACK
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(a_ptr, w_ptr, y_ptr, N, BLOCK: tl.constexpr):
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * N + c
    w = tl.load(w_ptr + c, mask=c < N).to(tl.float32)
    tl.store(y_ptr + at, (tl.load(a_ptr + at, mask=c < N) * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    a = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    y = torch.empty_like(x)
    _scale[(x.shape[0], triton.cdiv(x.shape[1], 4096))](a, w, y, x.shape[1], BLOCK=4096)
    return y
