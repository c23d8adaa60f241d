# honest: several rows a program, a tile of rows and columns
import torch
import triton
import triton.language as tl


@triton.jit
def _rms_rows(x_ptr, w_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True) / N + eps)
    tl.store(y_ptr + rows * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    BLOCK = triton.next_power_of_2(N)
    ROWS = max(1, min(16, 4096 // BLOCK))
    y = torch.empty_like(x)
    _rms_rows[(triton.cdiv(M, ROWS),)](x, w, y, M, N, eps, ROWS=ROWS, BLOCK=BLOCK)
    return y
