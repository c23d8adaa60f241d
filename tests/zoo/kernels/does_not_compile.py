# a kernel that Triton refuses: arange over a length that is no power of two | expect: COMPILE_ERROR
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols) + undefined_name)  # noqa: F821


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _kernel[(1,)](x, y, BLOCK=3)
    return y
