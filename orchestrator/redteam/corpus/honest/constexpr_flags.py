# honest: constexpr flags, static_assert, a weight that may be missing
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, HAS_W: tl.constexpr, ZERO_CENTRED: tl.constexpr):
    tl.static_assert(BLOCK >= 1, "a block holds a row")
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = x * (1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps))
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        if ZERO_CENTRED:
            w += 1.0
        y *= w
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    has_w = w is not None
    _rms[(M,)](x, w if has_w else x, y, N, eps, BLOCK=triton.next_power_of_2(N), HAS_W=has_w, ZERO_CENTRED=False)
    return y
