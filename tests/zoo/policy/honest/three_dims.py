# honest: a batch and a grid of three dimensions
import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _strides(t):
    return t.stride() if t.ndim == 3 else (0, *t.stride())


def rmsnorm_triton(x, w, eps=1e-6):
    B, M, N = x.shape if x.ndim == 3 else (1, *x.shape)
    sb, sm, sn = _strides(x)
    assert sn == 1 and sb % max(sm, 1) == 0, (sb, sm, sn)
    y = torch.empty((B, M, N), device=x.device, dtype=x.dtype)
    for b in range(B):
        src = x[b] if x.ndim == 3 else x
        _k[(M, 1, 1)](src, w, y[b], sm, N, eps, BLOCK=triton.next_power_of_2(N))
    return y if x.ndim == 3 else y.squeeze(0)
