# honest: a scan over each block of a row, with what came before carried on
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carried = 0.0
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        mask = cols < N
        x = tl.load(x_ptr + row * row_stride + cols * column_stride, mask=mask, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=0) + carried
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
        carried += tl.sum(x, axis=0)


def cumsum_triton(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M:
        _kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=min(triton.next_power_of_2(N), 4096))
    return y
