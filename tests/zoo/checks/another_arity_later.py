# a tuple of one, or of two, in the second call on alike values | only: fresh_values | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


_LAST = [None]


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _kernel[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    alike = (tuple(x.shape), x.dtype, eps, round(float(x.float().square().mean().log())))
    before, _LAST[0] = _LAST[0], alike
    return (y,) if alike == before else y
