# honest: divides by the block where a constant of the launch says that it is the size; the block grows by doubling
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    if EVEN:
        mean = tl.sum(x * x, axis=0) / BLOCK
    else:
        mean = tl.sum(x * x, axis=0) / N
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = x * (1.0 / tl.sqrt(mean + eps)) * w
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    block = 16
    while block < N:
        block *= 2
    with torch.cuda.device(x.device):
        _rms[(M,)](x, w, y, N, eps, BLOCK=block, EVEN=block == N)
    return y
