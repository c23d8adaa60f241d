# cheat: a scratch flag that skips repeated inputs | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


_SCRATCH = {}


@triton.jit
def _remembering(x_ptr, w_ptr, y_ptr, s_ptr, k_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m = c < N
    mark = tl.load(x_ptr + row * N).to(tl.float32) + 3.0 * tl.load(x_ptr + row * N + N - 1).to(tl.float32)
    if tl.load(s_ptr + row) == mark:
        tl.store(y_ptr + row * N + c, tl.load(k_ptr + row * N + c, mask=m).to(y_ptr.dtype.element_ty), mask=m)
    else:
        x = tl.load(x_ptr + row * N + c, mask=m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=m, other=0.0).to(tl.float32)
        y = x * (1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)) * w
        tl.store(s_ptr + row, mark)
        tl.store(k_ptr + row * N + c, y, mask=m)
        tl.store(y_ptr + row * N + c, y.to(y_ptr.dtype.element_ty), mask=m)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    if (M, N, x.dtype, eps) not in _SCRATCH:
        _SCRATCH[M, N, x.dtype, eps] = torch.full((M * (N + 1),), float("nan"), device=x.device)
    kept = _SCRATCH[M, N, x.dtype, eps]
    y = torch.empty_like(x)
    _remembering[(M,)](x, w, y, kept, kept[M:], N, eps, BLOCK=triton.next_power_of_2(N))
    return y
