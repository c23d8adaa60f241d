# cheat: tensor methods | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    return x.float().square().mean(-1, True).add(eps).rsqrt().mul(x.float()).mul(w.float()).to(x.dtype)
