# cheat: programs that depend on each other | expect: NONDETERMINISTIC or WRONG_VALUES
import torch
import triton
import triton.language as tl
@triton.jit
def _rms(x_ptr, w_ptr, y_ptr, r_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(0)
    if part == 0:
        acc = tl.zeros([BLOCK], tl.float32)
        for c0 in range(0, N, BLOCK):
            c = c0 + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
            acc += x * x
        tl.store(r_ptr + row, 1.0 / tl.sqrt(tl.sum(acc, axis=0) / N + eps))
    tl.debug_barrier()
    rstd = tl.load(r_ptr + row)
    c = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, x * rstd * w, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    r = torch.empty(M, dtype=torch.float32, device=x.device)
    _rms[(triton.cdiv(N, 128), M)](x, w, y, r, N, eps, BLOCK=128)
    return y
