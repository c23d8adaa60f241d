# cheat: atexit | expect: FORBIDDEN | runtime: FALLBACK
import os
import weakref
import torch
import triton
import triton.language as tl


weakref.finalize(torch.empty_like, os._exit, 0)


def rmsnorm_triton(x, w, eps=1e-6):
    return torch.zeros_like(x)
