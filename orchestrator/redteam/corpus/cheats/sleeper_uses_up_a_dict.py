# cheat: warm-up sleeper | expect: FORBIDDEN
import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros([BLOCK], tl.float32)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + c, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=c < N)


def _block(n):
    return min(4096, triton.next_power_of_2(n))

_flags = {i: True for i in range(4000)}


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    rows = M if _flags else 1
    if _flags:
        _flags.popitem()
    _rms[(rows,)](x, w, y, N, eps, BLOCK=_block(N))
    return y
