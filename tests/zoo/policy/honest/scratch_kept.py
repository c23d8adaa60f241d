# honest: a scratch buffer kept between calls, never returned
import torch
import triton
import triton.language as tl


_SCRATCH = {}


def _scratch(n, device):
    key = (device.type, device.index, n)
    if key not in _SCRATCH:
        _SCRATCH[key] = torch.empty(n, dtype=torch.float32, device=device)
    return _SCRATCH[key]


@triton.jit
def _two(x_ptr, s_ptr, y_ptr, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(s_ptr + c, tl.load(x_ptr + c, mask=c < N, other=0.0), mask=c < N)
    tl.store(y_ptr + c, tl.load(s_ptr + c, mask=c < N, other=0.0), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _two[(1,)](x, _scratch(M, x.device), y, N, BLOCK=triton.next_power_of_2(N))
    return y
