# grid-axis-missing medium: the columns beyond the first block are never touched
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + row * N + cols, x, mask=cols < N)


def entry(x):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, y, N, BLOCK=1024)  # here
    return y
