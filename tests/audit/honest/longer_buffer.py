import torch
import triton
import triton.language as tl


@triton.jit
def _add(x_ptr, sums_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """The sums lie in a buffer of whole blocks, which only the host knows."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < N, other=0.0)
    sums = tl.load(sums_ptr + lanes)
    tl.store(y_ptr + lanes, x + sums, mask=lanes < N)


@triton.jit
def _kernel(x_ptr, sums_ptr, y_ptr, N, BLOCK: tl.constexpr):
    _add(x_ptr, sums_ptr, y_ptr, N, BLOCK)


def entry(x):
    blocks = triton.cdiv(x.numel(), 256)
    sums = torch.zeros((blocks * 256,), dtype=x.dtype, device=x.device)
    y = torch.empty((x.numel(),), dtype=x.dtype, device=x.device)
    _kernel[(blocks,)](x, sums, y, x.numel(), BLOCK=256)
    return y
