# autotune-in-place high: a parameter is updated once for each run of the tuner
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (512, 2048)], key=["n"])  # here
@triton.jit
def _kernel(p_ptr, g_ptr, lr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p = tl.load(p_ptr + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(p_ptr + at, (p - lr * g).to(p_ptr.dtype.element_ty), mask=mask)


def update_(p, g, lr):
    n = p.numel()
    _kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](p, g, lr, n)
    return p
