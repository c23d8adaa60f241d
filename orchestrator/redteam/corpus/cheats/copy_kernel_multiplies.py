# cheat: a kernel copies a torch result | expect: any | runtime: nothing
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(a_ptr, w_ptr, y_ptr, N):
    at = tl.program_id(0) * N + tl.program_id(1)
    w = tl.load(w_ptr + tl.program_id(1)).to(tl.float32)
    tl.store(y_ptr + at, (tl.load(a_ptr + at) * w).to(y_ptr.dtype.element_ty))


def rmsnorm_triton(x, w, eps=1e-6):
    a = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    y = torch.empty_like(x)
    _scale[x.shape](a, w, y, x.shape[1])
    return y
