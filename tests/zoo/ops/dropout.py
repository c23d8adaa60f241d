# honest: a block of columns of one row a program, any strides
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, row_stride, column_stride, p, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    at = x_ptr + row.to(tl.int64) * row_stride + cols.to(tl.int64) * column_stride
    x = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    offset = row * N + cols
    y = tl.where(tl.rand(seed, offset) >= p, x / (1.0 - p), 0.0)
    tl.store(y_ptr + offset, y.to(y_ptr.dtype.element_ty), mask=mask)


def dropout_triton(x, p=0.5, seed=0):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M:
        BLOCK = min(triton.next_power_of_2(N), 8192)
        _kernel[(M, triton.cdiv(N, BLOCK))](x, y, N, x.stride(0), x.stride(1), p, seed, BLOCK=BLOCK)
    return y
