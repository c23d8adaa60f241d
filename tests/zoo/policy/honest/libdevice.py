# honest: libdevice with a fallback for older versions
import torch
import triton
import triton.language as tl


try:
    from triton.language.extra.libdevice import rsqrt
except ModuleNotFoundError:
    try:
        from triton.language.extra.cuda.libdevice import rsqrt
    except ImportError:
        from triton.language.math import rsqrt

@triton.jit
def _t(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(y_ptr + c, rsqrt(tl.load(x_ptr + c, mask=c < N, other=1.0)), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    y = torch.empty_like(x)
    _t[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y
