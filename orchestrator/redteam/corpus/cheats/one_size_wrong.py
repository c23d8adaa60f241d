# cheat: first shape only | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.jit
def _rmsnorm(x_ptr, w_ptr, y_ptr, N, eps, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = scale / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    x = x.contiguous()
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    scale = 2.0 if N == 5 * 1024 else 1.0
    _rmsnorm[(M,)](x, w, y, N, eps, scale, BLOCK=triton.next_power_of_2(N))
    return y
