# honest: autograd.Function in the newer style, setup_context
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


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(x, w, eps):
        y = torch.empty_like(x)
        _rms[(x.size(0),)](x, w, y, x.size(1), eps, BLOCK=triton.next_power_of_2(x.size(1)))
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, eps = inputs
        ctx.save_for_backward(x, w)
        ctx.eps = eps


def rmsnorm_triton(x, w, eps=1e-6):
    return RMSNorm.apply(x, w, eps)
