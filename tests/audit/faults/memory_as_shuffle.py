# store-then-load medium: lanes are exchanged through memory without a barrier
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, t_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(t_ptr + row * N + cols, x, mask=mask)
    y = tl.load(t_ptr + row * N + (N - 1 - cols), mask=mask, other=0.0)  # here
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def entry(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    t = torch.empty((M, N), dtype=torch.float32, device=x.device)
    _kernel[(M,)](x, t, y, N, BLOCK=triton.next_power_of_2(N))
    return y
