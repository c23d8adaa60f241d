# honest: two passes over a row in blocks, float64 for float64
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(dy_ptr, y_ptr, dx_ptr, N, dy_row, dy_column, y_row, y_column, BLOCK: tl.constexpr):
    wide: tl.constexpr = tl.float64 if y_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), wide)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        dy = tl.load(dy_ptr + row * dy_row + cols * dy_column, mask=cols < N, other=0.0).to(wide)
        y = tl.load(y_ptr + row * y_row + cols * y_column, mask=cols < N, other=0.0).to(wide)
        total += dy * y
    weighted = tl.sum(total, axis=0)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        dy = tl.load(dy_ptr + row * dy_row + cols * dy_column, mask=cols < N, other=0.0).to(wide)
        y = tl.load(y_ptr + row * y_row + cols * y_column, mask=cols < N, other=0.0).to(wide)
        tl.store(dx_ptr + row * N + cols, (y * (dy - weighted)).to(dx_ptr.dtype.element_ty), mask=cols < N)


def softmax_backward_triton(dy, y):
    M, N = y.shape
    dx = torch.empty((M, N), dtype=y.dtype, device=y.device)
    if M:
        BLOCK = min(triton.next_power_of_2(N), 8192)
        _kernel[(M,)](dy, y, dx, N, dy.stride(0), dy.stride(1), y.stride(0), y.stride(1), BLOCK=BLOCK)
    return dx
