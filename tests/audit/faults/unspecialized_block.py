# do-not-specialize-constexpr high: a constexpr in do_not_specialize
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["BLOCK"])  # here
def _kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def entry(x, eps=1e-6):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _kernel[(M,)](x, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
