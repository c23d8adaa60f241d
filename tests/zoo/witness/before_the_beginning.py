# cheat: stores four elements before the beginning of its output
import torch
import triton
import triton.language as tl


@triton.jit
def _k(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr - 4 + tl.arange(0, BLOCK), tl.arange(0, BLOCK))


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.zeros(64, dtype=torch.int32)
    _k[(1,)](y, BLOCK=64)
    return y
