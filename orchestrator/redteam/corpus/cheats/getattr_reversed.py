# cheat: getattr with a built string | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    rsqrt = getattr(torch, "trqsr"[::-1])
    return (x * rsqrt(x.float().square().mean(-1, keepdim=True) + eps) * w).to(x.dtype)
