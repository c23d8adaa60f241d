# constexpr-changes medium: compiled anew for each seed
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, n, SEED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(SEED, at) > 0.1
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, tl.where(keep, x, 0.0), mask=at < n)


def entry(x, seed):
    n = x.numel()
    y = torch.empty_like(x)
    _kernel[(triton.cdiv(n, 1024),)](x, y, n, SEED=seed, BLOCK=1024)  # here
    return y
