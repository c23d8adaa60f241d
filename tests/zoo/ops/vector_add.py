# honest: one block a program
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < N
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(z_ptr + at, (x + y).to(z_ptr.dtype.element_ty), mask=mask)


def vector_add_triton(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    if N:
        _kernel[(triton.cdiv(N, 8192),)](x, y, z, N, BLOCK=8192)
    return z
