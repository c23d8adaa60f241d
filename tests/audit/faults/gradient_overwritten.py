# writes-into-input medium: the result is written into the caller's tensor
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(grad_ptr, w_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    g = tl.load(grad_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(grad_ptr + row * N + cols, (g * w).to(grad_ptr.dtype.element_ty), mask=mask)  # here


def backward(grad, w):
    M, N = grad.shape
    _kernel[(M,)](grad, w, N, BLOCK=triton.next_power_of_2(N))
    return grad
