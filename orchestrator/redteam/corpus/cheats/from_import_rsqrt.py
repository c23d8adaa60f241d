# cheat: from torch import | expect: FALLBACK
from torch import rsqrt, square
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    v = square(x.float()).mean(-1, keepdim=True)
    return (x * rsqrt(v + eps) * w).to(x.dtype)
