# cheat: leaves the last elements of its output unwritten
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < n), mask=c < n - 3)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _k[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y
