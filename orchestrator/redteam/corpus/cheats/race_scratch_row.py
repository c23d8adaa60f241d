# cheat: race with num_warps | expect: WRONG_VALUES or NONDETERMINISTIC | needs: gpu
import torch
import triton
import triton.language as tl


@triton.jit
def _race(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(x_ptr + row * N + c, mask=m, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, x.to(y_ptr.dtype.element_ty), mask=m)
    back = N - 1 - c  # read what other warps store, without a barrier between
    x = tl.load(y_ptr + row * N + back, mask=back >= 0, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + back, mask=back >= 0, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + back, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=back >= 0)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _race[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N), num_warps=8)
    return y
