# grid-limit medium: rows on the second axis
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1).to(tl.int64)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + row * N + cols, x, mask=cols < N)


def entry(x):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(triton.cdiv(N, 1024), M)](x, y, N, BLOCK=1024)  # here
    return y
