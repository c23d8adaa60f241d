# honest: a decorator of the file that makes inputs contiguous
import torch
import triton
import triton.language as tl
import functools


@triton.jit
def _k(x_ptr, w_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sx + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def _ensure_contiguous(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        def maybe(t):
            return t.contiguous() if isinstance(t, torch.Tensor) else t

        args = [maybe(arg) for arg in args]
        kwargs = {k: maybe(v) for k, v in kwargs.items()}
        return fn(ctx, *args, **kwargs)

    return wrapper


class _F(torch.autograd.Function):
    @staticmethod
    @_ensure_contiguous
    def forward(ctx, x, w, eps, mode="plain", in_place=False):
        if mode == "plain" and not in_place:
            M, N = x.shape
            y = torch.empty_like(x)
            _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
            return y
        raise NotImplementedError(mode)


def rmsnorm_triton(x, w, eps=1e-6):
    return _F.apply(x, w, eps)
