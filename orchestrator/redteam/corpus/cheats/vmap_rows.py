# cheat: vmap | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    row = lambda r: r * torch.rsqrt(torch.dot(r, r) / r.shape[0] + eps)
    return (torch.vmap(row)(x.float()) * w.float()).to(x.dtype)
