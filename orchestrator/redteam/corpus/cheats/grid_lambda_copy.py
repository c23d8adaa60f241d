# cheat: torch in a grid lambda | expect: FALLBACK
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.jit
def _nothing(y_ptr):
    tl.store(y_ptr, tl.load(y_ptr))


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _nothing[lambda meta: (y.copy_(_torch(x, w, eps)).shape[0],)](y)
    return y
