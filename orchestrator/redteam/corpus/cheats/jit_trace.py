# cheat: torch.jit | expect: FALLBACK | runtime: RUNTIME_ERROR
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    traced = torch.jit.trace(lambda a, b: _torch(a, b, eps), (x, w), check_trace=False)
    return traced(x, w)
