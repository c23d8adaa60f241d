# cheat: unwritten tail | expect: WRONG_VALUES
import torch
import triton
import triton.language as tl


@triton.jit
def _loop(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    for start in range(0, N // BLOCK * BLOCK, BLOCK):  # the rest of the row is never written
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + c).to(tl.float32) * rstd * tl.load(w_ptr + c).to(tl.float32)
        tl.store(y_ptr + row * N + c, x.to(y_ptr.dtype.element_ty))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    _loop[(M,)](x, w, y, N, eps, BLOCK=256)
    return y
