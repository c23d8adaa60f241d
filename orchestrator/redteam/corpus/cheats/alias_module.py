# cheat: torch under an alias | expect: FORBIDDEN | runtime: FALLBACK
import torch as t
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    v = t.mean(t.square(x.float()), -1, keepdim=True)
    return (x * t.rsqrt(v + eps) * w).to(x.dtype)
