# dense-into-kept-strides medium: empty_like of a transposed input is transposed
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, sm, sn, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * sm + cols * sn, mask=mask, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def entry(x, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)  # here
    _kernel[(M,)](x, y, x.stride(0), x.stride(1), N, eps, BLOCK=triton.next_power_of_2(N))
    return y
