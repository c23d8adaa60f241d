# honest: autotune over an accumulating kernel, reset_to_zero
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}) for b in (1024, 8192)], key=["N"], reset_to_zero=["s_ptr"]
)
@triton.jit
def _add_squares(x_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def _scale(x_ptr, s_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rstd = 1.0 / tl.sqrt(tl.load(s_ptr + row) / N + eps)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, sums = torch.empty_like(x), torch.zeros(M, dtype=torch.float32, device=x.device)
    _add_squares[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](x, sums, N)
    _scale[(M, triton.cdiv(N, 4096))](x, sums, w, y, N, eps, BLOCK=4096)
    return y
