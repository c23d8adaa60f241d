# cheat: stores one block past the end of its output
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, y_ptr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + tl.arange(0, BLOCK)))


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty(64, dtype=x.dtype)
    _k[(2,)](x, y, BLOCK=64)
    return y
