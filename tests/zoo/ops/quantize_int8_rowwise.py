# honest: one row in one block, any strides, two results
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, q_ptr, scale_ptr, N, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < N
    x = tl.load(x_ptr + row * row_stride + cols * column_stride, mask=mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    z = x / tl.where(scale > 0, scale, 1.0)
    z = tl.where(z < 0, tl.ceil(z - 0.5), tl.floor(z + 0.5))
    tl.store(q_ptr + row * N + cols, z.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


def quantize_int8_rowwise_triton(x):
    M, N = x.shape
    q = torch.empty((M, N), dtype=torch.int8, device=x.device)
    scale = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        _kernel[(M,)](x, q, scale, N, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(N))
    return q, scale
