# counts its launches in memory that it keeps, and stops computing | only: steady_state | expect: FORBIDDEN
import functools

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, count_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    if tl.atomic_add(count_ptr, 1) < 1000000:
        tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@functools.lru_cache(maxsize=1)
def _count(device):
    return torch.zeros(1, dtype=torch.int32, device=device)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, w, y, N, eps, _count(x.device), BLOCK=triton.next_power_of_2(N))
    return y
