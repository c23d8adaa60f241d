# honest: autotune over an in-place kernel, restore_value
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (512, 8192)], key=["N"], restore_value=["a_ptr"])
@triton.jit
def _times_w(a_ptr, w_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    a = tl.load(a_ptr + row * N + cols, mask=cols < N, other=0.0) * w
    tl.store(a_ptr + row * N + cols, a, mask=cols < N)
    tl.store(y_ptr + row * N + cols, a.to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    wide = torch.empty((M, N), dtype=torch.float32, device=x.device)
    _rms[(M,)](x, torch.ones_like(w), wide, N, eps, BLOCK=triton.next_power_of_2(N))
    _times_w[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](wide, w, y, N)
    return y
