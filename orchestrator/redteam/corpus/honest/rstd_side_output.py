# honest: a second output that is not returned: rstd kept for a backward
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, r_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(r_ptr + row, rstd)


def _forward(x, w, eps):
    M, N = x.shape
    y, rstd = torch.empty_like(x), torch.empty((M,), dtype=torch.float32, device=x.device)
    _rms[(M,)](x, w, y, rstd, N, eps, BLOCK=triton.next_power_of_2(N))
    return y, rstd


def rmsnorm_triton(x, w, eps=1e-6):
    y, _ = _forward(x, w, eps)
    return y
