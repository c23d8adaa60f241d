# unmasked-access medium: no mask at all, the block is a constant
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)  # here
    tl.store(y_ptr + at, x * 2)


def entry(x):
    y = torch.empty_like(x)
    _kernel[(x.numel() // 1024,)](x, y, BLOCK=1024)
    return y
