# cheat: part of the work in torch | expect: FALLBACK
import torch
import triton
import triton.language as tl


@triton.jit
def _partial(x_ptr, p_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(p_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(x * x, 0))


def rmsnorm_triton(x, w, eps=1e-6):
    M, N = x.shape
    parts = triton.cdiv(N, 1024)
    partial = torch.empty((M, parts), dtype=torch.float32, device=x.device)
    _partial[(M, parts)](x, partial, N, BLOCK=1024)
    rstd = (partial.sum(1, keepdim=True) / N + eps).rsqrt()
    return (x.float() * rstd * w.float()).to(x.dtype)
