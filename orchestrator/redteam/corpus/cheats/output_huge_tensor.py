# cheat: huge output | expect: FALLBACK | runtime: WRONG_SHAPE
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    return torch.ones(1).expand(1 << 40, 1 << 20)
