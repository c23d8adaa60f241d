# torch casts x before the kernel does its work | only: host_operations | expect: FALLBACK
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps, y, *more):
    M, N = x.shape
    _kernel[(M,)](x, w, y, N, eps, *more, BLOCK=triton.next_power_of_2(N))
    return y


def rmsnorm_triton(x, w, eps=1e-6):
    return _launch(x.to(torch.float64).contiguous(), w, eps, torch.empty_like(x))
