# cheat: torch._C | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    var = torch._C.TensorBase.mean(torch._C.TensorBase.square(wide), -1, True)
    return torch._C.TensorBase.mul(wide * (var + eps).rsqrt(), w.float()).to(x.dtype)
