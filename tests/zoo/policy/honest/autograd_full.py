# honest: an autograd.Function with forward and backward kernels, atomics into zeros
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


@triton.jit
def _bwd(dy_ptr, x_ptr, w_ptr, dx_ptr, dw_ptr, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < N
    dy = tl.load(dy_ptr + c, mask=m, other=0.0)
    tl.atomic_add(dw_ptr + c, dy * tl.load(x_ptr + c, mask=m, other=0.0), mask=m)
    tl.store(dx_ptr + c, dy * tl.load(w_ptr + c, mask=m, other=0.0), mask=m)


class RMSNorm(torch.autograd.Function):
    """y = x * rstd * w."""

    @staticmethod
    def forward(ctx, x, w, eps):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        M, N = x.shape
        y = torch.empty_like(x)
        BLOCK, num_warps = _settings(N)
        _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=BLOCK, num_warps=num_warps)
        ctx.save_for_backward(x, w)
        ctx.eps = eps
        ctx.BLOCK, ctx.num_warps = BLOCK, num_warps
        ctx.shape = shape
        return y.view(*shape)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy.reshape(-1, ctx.shape[-1]).contiguous()
        M, N = dy.shape
        assert ctx.BLOCK >= N, f"block {ctx.BLOCK} below {N}"
        dx = torch.empty_like(dy)
        dw = torch.zeros(N, dtype=torch.float32, device=w.device) if ctx.needs_input_grad[1] else None
        _bwd[(M,)](dy, x, w, dx, dw, N, BLOCK=ctx.BLOCK, num_warps=ctx.num_warps)
        return dx.view(ctx.shape), dw, None


def _settings(n):
    MAX_FUSED_SIZE = 65536
    BLOCK_SIZE = triton.next_power_of_2(n)
    if BLOCK_SIZE > MAX_FUSED_SIZE:
        raise RuntimeError(f"Cannot launch Triton kernel since n = {n} exceeds {MAX_FUSED_SIZE}.")
    num_warps = 4
    if BLOCK_SIZE >= 32768:
        num_warps = 32 if not _is_hip() else 16
    elif BLOCK_SIZE >= 8192:
        num_warps = 16
    elif BLOCK_SIZE >= 2048:
        num_warps = 8
    return BLOCK_SIZE, num_warps


def _is_hip() -> bool:
    return torch.version.hip is not None


def rmsnorm_triton(x, w, eps=1e-6):
    return RMSNorm.apply(x, w, eps)
