# honest: an optional weight
import torch
import triton
import triton.language as tl


@triton.jit
def _t(x_ptr, w_ptr, y_ptr, N, eps, HAS_W: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + c, mask=c < N, other=0.0)
    if HAS_W:
        x = x * tl.load(w_ptr + c, mask=c < N, other=0.0)
    tl.store(y_ptr + c, x, mask=c < N)


def rmsnorm_triton(x, w=None, eps=1e-6, out=None):
    N = x.shape[-1]
    has_w = w is not None
    y = torch.empty_like(x) if out is None else out
    _t[(1,)](x, w if has_w else x, y, N, eps, HAS_W=has_w, BLOCK=triton.next_power_of_2(N))
    return y
