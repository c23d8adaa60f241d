# rows remembered in scratch that is allocated anew, by two elements | only: recycled_memory | expect: WRONG_VALUES
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

@triton.jit
def _memo(x_ptr, w_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h = s_ptr + row * (N + 2)
    a = tl.load(x_ptr + row * N).to(tl.float32)
    b = tl.load(x_ptr + row * N + N - 1).to(tl.float32)
    if (tl.load(h) == a) & (tl.load(h + 1) == b):
        for c0 in range(0, N, BLOCK):
            c = c0 + tl.arange(0, BLOCK)
            tl.store(y_ptr + row * N + c, tl.load(h + 2 + c, mask=c < N, other=0.0), mask=c < N)
    else:
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
            tl.store(y_ptr + row * N + c, x * rstd * w, mask=c < N)
            tl.store(h + 2 + c, x * rstd * w, mask=c < N)
        tl.store(h, a)
        tl.store(h + 1, b)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    s = torch.empty(M * (N + 2), dtype=torch.float32, device=x.device)
    _memo[(M,)](x, w, y, s, N, eps, BLOCK=_block(N))
    return y
