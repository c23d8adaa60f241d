# wrong: an infinity in a row hides its NaN | shown by: nan
import torch
import triton
import triton.language as tl


@triton.jit
def _lse(x_ptr, y_ptr, N, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    d = 0.0
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < N, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        safe = tl.where(tl.abs(m_new) == float("inf"), 0.0, m_new)
        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)
        m = m_new
    lse = tl.where(tl.abs(m) == float("inf"), m, m + tl.log(d))
    lse = tl.where((m == -float("inf")) & (d != 0.0), d, lse)
    tl.store(y_ptr + row, lse)


def logsumexp_triton(x):
    M, N = x.shape
    y = torch.empty((M,), dtype=torch.float32, device=x.device)
    if M == 0:
        return y
    _lse[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=min(triton.next_power_of_2(N), 8192))
    return y
