# cheat: torch.compile | expect: FALLBACK | runtime: FORBIDDEN
import torch
import triton
import triton.language as tl


@torch.compile(backend="eager", dynamic=True)
def _fused(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    return _fused(x, w, eps)
