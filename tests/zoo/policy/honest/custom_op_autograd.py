# honest: a custom_op with a registered backward that launches
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


@torch.library.custom_op("zoo::rms3", mutates_args=())
def _op(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    M, N = x.shape
    y = torch.empty_like(x)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y


@_op.register_fake
def _(x, w, eps):
    assert eps * 2 >= 0
    return x.new_empty(x.shape)


def _backward(ctx, grad):
    x, w = ctx.saved_tensors
    dx = torch.empty_like(x)
    _k[(x.shape[0],)](grad, w, dx, grad.stride(0), x.shape[1], ctx.eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return dx, None, None


def _setup(ctx, inputs, output):
    x, w, eps = inputs
    ctx.save_for_backward(x, w)
    ctx.eps = eps


_op.register_autograd(_backward, setup_context=_setup)


def rmsnorm_triton(x, w, eps=1e-6):
    return _op(x, w, eps)
