# honest: a block of columns of one row a program, any strides
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * row_stride + cols * column_stride, mask=mask, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = x / (1.0 + tl.exp(-2.0 * inner))  # (1 + tanh z) / 2 is the sigmoid of 2z
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def gelu_tanh_triton(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M:
        BLOCK = min(triton.next_power_of_2(N), 8192)
        _kernel[(M, triton.cdiv(N, BLOCK))](x, y, N, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return y
