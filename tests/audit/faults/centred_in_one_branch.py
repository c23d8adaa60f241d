# padding-in-sum high: one branch moves the padded lanes, the other leaves them, and none sets them back
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, CENTRE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    d = x - tl.sum(x, axis=0) / N if CENTRE else x
    rstd = tl.rsqrt(tl.sum(d * d, axis=0) / N + eps)  # here
    tl.store(y_ptr + row * N + cols, (d * rstd).to(y_ptr.dtype.element_ty), mask=mask)


def entry(x, eps=1e-6):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _kernel[(M,)](x, y, N, eps, BLOCK=triton.next_power_of_2(N), CENTRE=True)
    return y
