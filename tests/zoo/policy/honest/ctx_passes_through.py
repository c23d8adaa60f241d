# honest: a helper that takes ctx, an optional gradient | notes: 1
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


class _F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps=1e-6, memory_efficient=False):
        y, saved = _forward(x, w, eps)
        _save(ctx, x, w, eps, saved if memory_efficient else None)
        return y

    @staticmethod
    def backward(ctx, *grads):
        (dy,) = grads
        x, w = ctx.saved_tensors
        if not any(ctx.needs_input_grad):
            return None, None, None, None
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        _k[(ctx.M,)](dy.contiguous(), w, dx, ctx.N, ctx.N, ctx.eps, BLOCK=ctx.meta["BLOCK"])
        return dx, None, None, None


def _save(ctx, x, w, eps, saved):
    ctx.save_for_backward(x, w)
    ctx.set_materialize_grads(False)
    ctx.eps, ctx.meta = eps, {"BLOCK": triton.next_power_of_2(x.shape[1])}
    ctx.M, ctx.N = x.shape
    if saved is not None:
        ctx.mark_non_differentiable(saved)


def _forward(x, w, eps):
    M, N = x.shape
    y = torch.empty_like(x)
    rstd = torch.empty(M, dtype=torch.float32, device=x.device)
    _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y, rstd


def rmsnorm_triton(x, w, eps=1e-6):
    return _F.apply(x, w, eps, x.requires_grad and torch.is_grad_enabled())
