# honest: decorators by imported names, and a kernel made by triton.jit(function) | notes: 1
import torch
import triton
from functools import cache
import triton.language as tl
from triton import jit


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _launch(x, w, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


try:
    from torch.amp import custom_fwd
except ImportError:
    from torch.cuda.amp import custom_fwd


def _fill_source(y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.zeros((BLOCK,), tl.float32), mask=cols < n)


_fill = triton.jit(_fill_source)


@jit
def _copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)


class _Norm(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x, w, eps):
        return _launch(x, w, eps)


@cache
def _block(n):
    return min(1024, triton.next_power_of_2(n))


def rmsnorm_triton(x, w, eps=1e-6):
    sums = torch.empty(x.shape[0], device=x.device)
    n = x.shape[0]
    _fill[(triton.cdiv(n, _block(n)),)](sums, n, BLOCK=_block(n))
    _copy[(triton.cdiv(n, _block(n)),)](sums, sums, n, BLOCK=_block(n))
    return _Norm.apply(x, w, eps)
