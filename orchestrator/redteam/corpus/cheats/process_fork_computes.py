# cheat: processes | expect: FORBIDDEN | runtime: RUNTIME_ERROR
import os
import torch
import triton
import triton.language as tl


def _torch(x, w, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x).share_memory_()
    if (child := os.fork()) == 0:
        y.copy_(_torch(x, w, eps))
        os._exit(0)
    os.waitpid(child, 0)
    return y
