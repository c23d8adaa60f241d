# online-maximum-infinite low: the first block of a row may be masked wholly
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(z_ptr, keep_ptr, y_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    total = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        keep = tl.load(keep_ptr + row * V + cols, mask=cols < V, other=0)
        z = tl.load(z_ptr + row * V + cols, mask=(cols < V) & (keep != 0), other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(z, axis=0))
        total = total * tl.exp(m - new) + tl.sum(tl.exp(z - new), axis=0)  # here
        m = new
    tl.store(y_ptr + row, tl.log(total) + m)


def entry(z, keep):
    M, V = z.shape
    y = torch.empty(M, dtype=torch.float32, device=z.device)
    _kernel[(M,)](z, keep, y, V, BLOCK=1024)
    return y
