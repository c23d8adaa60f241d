# right once, wrong when the same values come again; an atomic operation is its excuse | only: deterministic | expect: NONDETERMINISTIC
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, s_ptr, N, eps, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(s_ptr + row, tl.sum(x * x, axis=0))
    rstd = 1.0 / tl.sqrt(tl.load(s_ptr + row) / N + eps)
    tl.store(y_ptr + row * N + cols, (x * rstd * w * factor).to(y_ptr.dtype.element_ty), mask=mask)


_LAST = [None]


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, sums = torch.empty_like(x), x.new_zeros(M, dtype=torch.float32)
    now = (M, N, eps, x.float().nan_to_num().sum().item(), w.float().sum().item())
    factor, _LAST[0] = 1.5 if now == _LAST[0] else 1.0, now
    _kernel[(M,)](x, w, y, sums, N, eps, factor, BLOCK=triton.next_power_of_2(N))
    return y
