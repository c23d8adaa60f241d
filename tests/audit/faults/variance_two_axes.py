# padding-in-sum high: the same along the second axis of a tile
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    at = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    d = x - mean[:, None]
    variance = tl.sum(d * d, axis=1) / N  # here
    tl.store(y_ptr + at, (d / tl.sqrt(variance + eps)[:, None]).to(y_ptr.dtype.element_ty), mask=mask)


def entry(x, eps=1e-5):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    _kernel[(triton.cdiv(M, 4),)](x, y, M, N, eps, ROWS=4, BLOCK=triton.next_power_of_2(N))
    return y
