# honest: the sum of squares by tl.dot in ieee precision
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    ones = tl.full([BLOCK, 16], 1.0, tl.float32)
    acc = tl.zeros([ROWS], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        x = tl.load(x_ptr + rows * N + cols, mask=(rows < M) & (cols < N), other=0.0).to(tl.float32)
        # The columns are alike. Not accumulated in the dot: a chain of 131072 sums loses 7 bits.
        acc += tl.max(tl.dot(x * x, ones, input_precision="ieee"), axis=1)
    rstd = 1.0 / tl.sqrt(acc / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        mask = (rows < M) & (cols < N)
        x = tl.load(x_ptr + rows * N + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + rows * N + cols, (x * rstd[:, None] * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _rms[(triton.cdiv(M, 16),)](x, w, y, M, N, eps, ROWS=16, BLOCK=256)
    return y
