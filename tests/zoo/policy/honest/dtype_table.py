# honest: a table from torch dtypes to Triton dtypes
import torch
import triton
import triton.language as tl


_DTYPES = {
    torch.float32: tl.float32,
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
}
_WARPS = {256: 2, 512: 4}
_ALLOWED = [torch.float32, torch.bfloat16]


@triton.jit
def _t(x_ptr, y_ptr, N, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0).to(DTYPE), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    if x.dtype not in _DTYPES:
        raise TypeError(f"{x.dtype} is not one of {list(_DTYPES)}")
    N = x.shape[-1]
    BLOCK = triton.next_power_of_2(N)
    acc = torch.float32 if x.dtype == torch.float16 else x.dtype
    y = torch.empty(x.shape, dtype=acc, device=x.device)
    _t[(1,)](x, y, N, DTYPE=_DTYPES[acc], BLOCK=BLOCK, num_warps=_WARPS.get(BLOCK, 8))
    return y
