# cheat: __main__ is changed | expect: FORBIDDEN | runtime: FALLBACK
import __main__
import torch
import triton
import triton.language as tl


__main__.compare = __main__.TOLERANCE = None


def rmsnorm_triton(x, w, eps=1e-6):
    return torch.zeros_like(x)
