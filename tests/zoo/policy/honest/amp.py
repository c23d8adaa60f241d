# honest: custom_fwd and custom_bwd
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
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, w, eps):
        M, N = x.shape
        if torch.is_autocast_enabled() and torch.get_autocast_dtype("cuda") == torch.bfloat16:
            dtype = torch.bfloat16
        else:
            dtype = torch.promote_types(x.dtype, w.dtype)
        y = torch.empty((M, N), dtype=dtype, device=x.device)
        _k[(M,)](x, w, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N))
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, dy):
        raise NotImplementedError("forward only")


def rmsnorm_triton(x, w, eps=1e-6):
    return _F.apply(x, w, eps)
