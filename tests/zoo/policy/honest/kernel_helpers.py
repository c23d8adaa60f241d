# honest: jit helpers, static_range, asserts and constants in kernels
import torch
import triton
import triton.language as tl


LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
EPS = tl.constexpr(1e-6)


@triton.jit
def _combine(a, b):
    return a + b


@triton.jit(do_not_specialize=["eps"])
def _t(x_ptr, y_ptr, sx, N, eps, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    tl.static_assert(BLOCK >= 16)
    for r in tl.static_range(ROWS):
        row = tl.program_id(0) * ROWS + r
        x_row = x_ptr + row * sx
        c = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 16), 16)
        x = tl.load(x_row + c, mask=c < N, other=0.0, cache_modifier=".cg").to(tl.float32)
        s = tl.reduce(x * x, 0, _combine)
        v = tl.math.exp2(x * LOG2E) * tl.extra.cuda.libdevice.rsqrt(s / N + EPS)
        out = v.to(y_ptr.dtype.element_ty)
        z = x.to(out.dtype)
        tl.store(y_ptr + row * N + c, z + out, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    ROWS = 4 if M % 4 == 0 else 1
    _t[(M // ROWS,)](x, y, x.stride(0), N, eps, BLOCK=triton.next_power_of_2(N), ROWS=ROWS)
    return y
