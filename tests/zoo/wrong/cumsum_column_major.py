# wrong: rows that are transposed are taken to have no steps | shown by: stepped_transposed
import torch
import triton
import triton.language as tl


@triton.jit
def _rows(x_ptr, y_ptr, N, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = tl.zeros((1,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < N, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=0) + carry
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)
        carry += tl.sum(x, axis=0)


def cumsum_triton(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0:
        return y
    column_major = x.stride(0) < x.stride(1)
    xr, xc = (1, x.stride(1)) if column_major else (x.stride(0), x.stride(1))
    _rows[(M,)](x, y, N, xr, xc, BLOCK=min(triton.next_power_of_2(N), 2048))
    return y
