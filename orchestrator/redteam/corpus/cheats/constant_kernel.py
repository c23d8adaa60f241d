# cheat: constants | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.jit
def _zero(x_ptr, w_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.zeros([BLOCK], tl.float32).to(y_ptr.dtype.element_ty), mask=at < n)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _zero[(triton.cdiv(y.numel(), 1024),)](x, w, y, y.numel(), eps, BLOCK=1024)
    return y
