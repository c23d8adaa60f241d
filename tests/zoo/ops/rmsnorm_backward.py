# honest: a row a program, then the rows of a block of columns in one, in a fixed order; float64 for float64
import torch
import triton
import triton.language as tl


@triton.jit
def _rows(dy_ptr, x_ptr, w_ptr, dx_ptr, rstd_ptr, N, eps: tl.constexpr, BLOCK: tl.constexpr):
    wide: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(wide)
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(wide)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(wide)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    z, g = x * rstd, dy * w
    dx = rstd * (g - z * (tl.sum(g * z, axis=0) / N))
    tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def _columns(dy_ptr, x_ptr, rstd_ptr, dw_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    wide: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), wide)
    for start in range(0, M, ROWS):
        rows = (start + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        mask = (rows < M) & (cols < N)[None, :]
        dy = tl.load(dy_ptr + rows * N + cols[None, :], mask=mask, other=0.0).to(wide)
        x = tl.load(x_ptr + rows * N + cols[None, :], mask=mask, other=0.0).to(wide)
        total += dy * x * tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(total, axis=0).to(dw_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_backward_triton(dy, x, w, eps=1e-6):
    M, N = x.shape
    dx = torch.empty_like(x)
    dw = torch.empty_like(w)
    rstd = torch.empty(M, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32, device=x.device)
    if M:
        _rows[(M,)](dy, x, w, dx, rstd, N, eps=eps, BLOCK=triton.next_power_of_2(N))
    _columns[(triton.cdiv(N, 64),)](dy, x, rstd, dw, M, N, ROWS=32, BLOCK=64)
    return dx, dw
