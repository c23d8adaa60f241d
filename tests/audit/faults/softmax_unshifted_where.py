# exp-without-maximum high: softmax of values as they are, small ones set to minus infinity within the exp
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(tl.where(x < -1e30, float("-inf"), x))  # here
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def entry(x, eps=1e-6):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _kernel[(M,)](x, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
