# cheat: race with num_warps | expect: WRONG_VALUES or NONDETERMINISTIC | needs: gpu
import torch
import triton
import triton.language as tl


@triton.jit
def _race(x_ptr, w_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    if part == 0:
        total = 0.0
        for start in range(0, N, BLOCK):
            c = start + tl.arange(0, BLOCK)
            a = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
            total += tl.sum(a * a, axis=0)
        tl.store(s_ptr + row, total)
    c = part * BLOCK + tl.arange(0, BLOCK)  # other programs do not wait for program 0
    rstd = 1.0 / tl.sqrt(tl.load(s_ptr + row) / N + eps)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + c, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y, s = torch.empty_like(x), torch.zeros((M,), dtype=torch.float32, device=x.device)
    parts = triton.cdiv(N, 256)
    _race[(M, parts)](x, w, y, s, N, eps, BLOCK=256)
    return y
