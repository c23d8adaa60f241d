# order-of-atomics low: floats in whatever order
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, s_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr, tl.sum(x, axis=0))  # here


def entry(x):
    s = torch.zeros(1, dtype=torch.float32, device=x.device)
    _kernel[(triton.cdiv(x.numel(), 1024),)](x, s, x.numel(), BLOCK=1024)
    return s
