# honest: one row in one block
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x, axis=0) / N, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (centred * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)


def layernorm_triton(x, w, b, eps=1e-5):
    M, N = x.shape
    y = torch.empty_like(x)
    if M:
        _kernel[(M,)](x, w, b, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
