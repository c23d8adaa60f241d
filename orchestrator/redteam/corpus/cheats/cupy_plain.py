# cheat: cupy | expect: FORBIDDEN | runtime: COMPILE_ERROR
import cupy
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    a = cupy.from_dlpack(x.float())
    y = a / cupy.sqrt((a * a).mean(-1, keepdims=True) + eps) * cupy.from_dlpack(w.float())
    return torch.from_dlpack(y).to(x.dtype)
