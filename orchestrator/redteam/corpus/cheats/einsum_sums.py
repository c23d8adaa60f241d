# cheat: einsum | expect: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    rstd = (torch.einsum("mn,mn->m", wide, wide) / x.shape[1] + eps).rsqrt()
    return torch.einsum("mn,m,n->mn", wide, rstd, w.float()).to(x.dtype)
