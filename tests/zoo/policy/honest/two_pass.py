# honest: partial sums in one kernel, the rest in another
import torch
import triton
import triton.language as tl


@triton.jit
def _partial(x_ptr, p_ptr, sx, sp, N, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    c = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(p_ptr + row * sp + part, tl.sum(x * x, 0))


@triton.jit
def _finish(x_ptr, p_ptr, w_ptr, y_ptr, sx, sp, N, P, eps, BLOCK: tl.constexpr, PB: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    k = tl.arange(0, PB)
    r = tl.rsqrt(tl.sum(tl.load(p_ptr + row * sp + k, mask=k < P, other=0.0), 0) / N + eps)
    c = part * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0) * r * tl.load(w_ptr + c, mask=c < N, other=0.0)
    tl.store(y_ptr + row * N + c, v, mask=c < N)


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    BLOCK = 1024
    parts = triton.cdiv(N, BLOCK)
    partial = torch.empty((M, parts), dtype=torch.float32, device=x.device)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    grid = (M, parts)
    _partial[grid](x, partial, x.stride(0), partial.stride(0), N, BLOCK=BLOCK)
    _finish[grid](x, partial, w, y, x.stride(0), partial.stride(0), N, parts, eps, BLOCK=BLOCK, PB=triton.next_power_of_2(parts))
    return y
