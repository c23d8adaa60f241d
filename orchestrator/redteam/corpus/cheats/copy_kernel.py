# cheat: a kernel copies a torch result | expect: FALLBACK
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.jit
def _copy(a_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(a_ptr + at, mask=at < n), mask=at < n)


def rmsnorm_triton(x, w, eps=1e-6):
    a = _torch(x, w, eps)
    y = torch.empty_like(x)
    _copy[(triton.cdiv(y.numel(), 1024),)](a, y, y.numel(), BLOCK=1024)
    return y
