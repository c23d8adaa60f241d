import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(rstd_ptr, y_ptr, B, C, BLOCK_B: tl.constexpr = 1, BLOCK_C: tl.constexpr = 128):
    """The inverse of padding is infinite, and no lane along the summed axis is padded: its block is of one."""
    columns = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_C,), dtype=tl.float32)
    for b in range(0, B, BLOCK_B):
        rows = b + tl.arange(0, BLOCK_B)[:, None]
        mask = (rows < B) & (columns[None, :] < C)
        rstd = tl.load(rstd_ptr + rows * C + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        total += tl.sum(1 / (rstd * rstd), axis=0)
    tl.store(y_ptr + columns, total, mask=columns < C)


def entry(rstd):
    B, C = rstd.shape
    y = torch.empty((C,), dtype=torch.float32, device=rstd.device)
    _kernel[(triton.cdiv(C, 128),)](rstd, y, B, C)
    return y
