import torch
import triton
import triton.language as tl
CONFIGS = []
for w in (2, 4):
    for b in (512, 1024):
        CONFIGS.append(triton.Config({"BLOCK": b}, num_warps=w))
@triton.autotune(CONFIGS, key=["n"], use_cuda_graph=False)
@triton.jit
def k(x, y, z, n, BLOCK: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o, o < n, 0.0).to(tl.float32) + tl.load(y + o, o < n, 0.0).to(tl.float32)
    tl.store(z + o, a.to(z.dtype.element_ty), o < n)
def vector_add_triton(x, y):
    z = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return z
    k[lambda m: (triton.cdiv(n, m["BLOCK"]),)](x, y, z, n)
    return z
