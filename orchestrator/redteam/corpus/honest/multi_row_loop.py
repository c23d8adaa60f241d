# honest: several rows a program, one after the other, w loaded once
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    for i in tl.static_range(ROWS):
        row = (tl.program_id(0) * ROWS + i).to(tl.int64)
        mask = (cols < N) & (row < M)
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
        tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(triton.cdiv(M, 4),)](x, w, y, M, N, eps, ROWS=4, BLOCK=triton.next_power_of_2(N))
    return y
