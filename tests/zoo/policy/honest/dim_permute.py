# honest: an op over any dimension
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


def rmsnorm_triton(x, w, dim=-1, eps=1e-6):
    ndim = x.dim()
    dim = dim % ndim
    order = [d for d in range(ndim) if d != dim] + [dim]
    back = [order.index(d) for d in range(ndim)]
    xp = x.permute(order).contiguous() if dim != ndim - 1 else x.contiguous()
    N = xp.shape[-1]
    M = xp.numel() // max(N, 1)
    flat = xp.view(M, N)
    y = torch.empty_like(flat)
    _k[(M,)](flat, w, y, flat.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
    return y.view(xp.shape).permute(back)
