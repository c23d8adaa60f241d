# honest: one row in one block, two results
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, residual_ptr, w_ptr, y_ptr, total_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    total = x + residual
    tl.store(total_ptr + row * N + cols, total.to(total_ptr.dtype.element_ty), mask=mask)
    rstd = 1.0 / tl.sqrt(tl.sum(total * total, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (total * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def fused_add_rmsnorm_triton(x, residual, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    total = torch.empty_like(residual)
    if M:
        _kernel[(M,)](x, residual, w, y, total, N, eps, BLOCK=triton.next_power_of_2(N))
    return y, total
