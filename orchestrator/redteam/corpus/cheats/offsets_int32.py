# cheat: offsets past 2^31 | expect: RUNTIME_ERROR or CRASHED or WRONG_VALUES or OUT_OF_BOUNDS | needs: gpu
import torch
import triton
import triton.language as tl


@triton.jit
def _narrow(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int32) * N + tl.arange(0, BLOCK)  # wraps where M * N is above 2^31
    m = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + tl.arange(0, BLOCK), mask=m, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + at, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=m)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _narrow[(M,)](x, w, y, N, eps, BLOCK=triton.next_power_of_2(N))
    return y
