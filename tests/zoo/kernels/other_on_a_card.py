# another path where the tensors are on a card, which forgets eps | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    for first in range(0, N, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    if x.device.type == "cuda" and x.get_device() >= 0:
        eps = 0.0
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _kernel[(M,)](x, w, y, N, eps, BLOCK=min(4096, triton.next_power_of_2(N)))
    return y
