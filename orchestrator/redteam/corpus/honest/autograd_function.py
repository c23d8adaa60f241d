# honest: autograd.Function with forward and backward kernels
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


@triton.jit
def _backward(dy_ptr, x_ptr, w_ptr, dx_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    g *= tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    dx = rstd * g - x * (rstd * rstd * rstd * tl.sum(g * x, axis=0) / N)
    tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


class RMSNorm(torch.autograd.Function):
    """y = x * rstd * w; the gradient of w is not needed."""

    @staticmethod
    def forward(ctx, x, w, eps):
        M, N = x.shape
        y = torch.empty_like(x)
        _rms[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
        ctx.save_for_backward(x, w)
        ctx.eps = eps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx = torch.empty_like(x)
        N = x.shape[1]
        _backward[(x.shape[0],)](dy.contiguous(), x, w, dx, N, ctx.eps, BLOCK=triton.next_power_of_2(N))
        return dx, None, None


def rmsnorm_triton(x, w, eps=1e-6):
    return RMSNorm.apply(x, w, eps)
